import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Produced;

/**
 * Copies a topic of numbers to another with Kafka Streams, each once, until standard input ends.
 * Arguments: bootstrap servers, the name of the application, source, sink, a directory, more properties as name=value.
 * It prints its states, and the exceptions that a thread of it ended with.
 */
public class Streams {
    public static void main(String[] words) throws Exception {
        Properties config = new Properties();
        config.putAll(Map.of(
            StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, words[0],
            StreamsConfig.APPLICATION_ID_CONFIG, words[1],
            StreamsConfig.STATE_DIR_CONFIG, words[4],
            StreamsConfig.PROCESSING_GUARANTEE_CONFIG, StreamsConfig.EXACTLY_ONCE_V2,
            StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.ByteArraySerde.class.getName(),
            StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.ByteArraySerde.class.getName()));
        for (int i = 5; i < words.length; i++)
            config.put(words[i].split("=", 2)[0], words[i].split("=", 2)[1]);

        AtomicLong copied = new AtomicLong();
        StreamsBuilder topology = new StreamsBuilder();
        topology.<byte[], byte[]>stream(words[2])
            .peek((key, value) -> copied.incrementAndGet())
            .to(words[3], Produced.streamPartitioner((topic, key, value, partitions) ->
                Optional.of(Set.of(Integer.parseInt(new String(value, StandardCharsets.US_ASCII)) % partitions))));
        KafkaStreams streams = new KafkaStreams(topology.build(), config);
        streams.setUncaughtExceptionHandler(failed -> {
            StringBuilder line = new StringBuilder("replaced");
            for (Throwable each = failed; each != null; each = each.getCause())
                line.append(" ").append(each.getClass().getSimpleName()).append(": ").append(each.getMessage());
            System.out.println(line.toString().replace('\n', ' '));
            return StreamThreadExceptionResponse.REPLACE_THREAD;
        });
        streams.setStateListener((now, before) -> System.out.println(now));
        streams.start();
        while (System.in.read() != -1)
            continue;
        streams.close();
        System.out.println("copied " + copied);
        System.exit(0);
    }
}
