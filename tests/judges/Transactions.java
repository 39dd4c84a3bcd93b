import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Scanner;
import java.util.Set;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Kafka's producers and consumers, driven word by word.
 * A line of input is a command: what to do, the name of the client that shall do it, arguments, separated by blanks.
 * A line of output is its answer: "ok" and what was found, or "failed" and the exceptions, each before its cause.
 */
public class Transactions {
    private static final Duration TIMEOUT = Duration.ofSeconds(60);

    private final Map<String, KafkaProducer<String, String>> producers = new HashMap<>();
    private final Map<String, KafkaConsumer<String, String>> consumers = new HashMap<>();

    public static void main(String[] ignored) {
        PrintStream answers = System.out;
        System.setOut(System.err);
        Transactions clients = new Transactions();
        Scanner lines = new Scanner(System.in, StandardCharsets.UTF_8);
        while (lines.hasNextLine()) {
            String[] words = lines.nextLine().split(" ");
            answers.println(answer(() -> clients.run(words[0], words[1], Arrays.asList(words).subList(2, words.length))));
            answers.flush();
        }
        System.exit(0);
    }

    private static String answer(Callable<List<String>> command) {
        try {
            return String.join(" ", List.of("ok", String.join(" ", command.call()))).trim();
        } catch (Exception failed) {
            List<String> names = new ArrayList<>();
            List<String> messages = new ArrayList<>();
            for (Throwable each = failed; each != null; each = each.getCause()) {
                if (each instanceof ExecutionException)
                    continue;
                names.add(each.getClass().getSimpleName());
                messages.add(String.valueOf(each.getMessage()).replace('\n', ' '));
            }
            return "failed " + String.join(",", names) + " " + String.join(" | ", messages);
        }
    }

    private List<String> run(String command, String name, List<String> words) throws Exception {
        KafkaProducer<String, String> producer = producers.get(name);
        KafkaConsumer<String, String> consumer = consumers.get(name);
        switch (command) {
            case "producer":
                producers.put(name, new KafkaProducer<>(config(words), new StringSerializer(), new StringSerializer()));
                return List.of();
            case "init":
                producer.initTransactions();
                return List.of();
            case "begin":
                producer.beginTransaction();
                return List.of();
            case "send":
                return send(producer, words.get(0), Integer.parseInt(words.get(1)), words.subList(2, words.size()));
            case "offsets":
                return sendOffsets(producer, consumers.get(words.get(0)));
            case "offset":
                return sendOffset(producer, words);
            case "commit":
                producer.commitTransaction();
                return List.of();
            case "abort":
                producer.abortTransaction();
                return List.of();
            case "consumer":
                consumers.put(name, new KafkaConsumer<>(config(words), new StringDeserializer(), new StringDeserializer()));
                return List.of();
            case "subscribe":
                consumer.subscribe(words);
                return List.of();
            case "poll":
                return poll(consumer, Duration.ofMillis(Long.parseLong(words.get(0))));
            case "committed":
                return committed(consumer, words.get(0), Integer.parseInt(words.get(1)));
            case "read":
                return read(consumer, words.get(0), Integer.parseInt(words.get(1)));
            case "leave":
                consumers.remove(name).close();
                return List.of();
            case "close":
                producers.remove(name).close(Duration.ofSeconds(5));
                return List.of();
            default:
                throw new IllegalArgumentException(command);
        }
    }

    private static Map<String, Object> config(List<String> words) {
        return words.stream().map(word -> word.split("=", 2)).collect(Collectors.toMap(pair -> pair[0], pair -> pair[1]));
    }

    /** The offsets of values that were all in flight at once. */
    private static List<String> send(KafkaProducer<String, String> producer, String topic, int partition, List<String> values)
            throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (String value : values)
            sent.add(producer.send(new ProducerRecord<>(topic, partition, null, value)));
        producer.flush();
        List<String> offsets = new ArrayList<>();
        for (Future<RecordMetadata> each : sent)
            offsets.add(String.valueOf(each.get().offset()));
        return offsets;
    }

    /** What this consumer has read, as a member of its group. */
    private static List<String> sendOffsets(KafkaProducer<String, String> producer, KafkaConsumer<String, String> consumer) {
        Map<TopicPartition, OffsetAndMetadata> positions = new HashMap<>();
        for (TopicPartition partition : consumer.assignment())
            positions.put(partition, new OffsetAndMetadata(consumer.position(partition)));
        producer.sendOffsetsToTransaction(positions, consumer.groupMetadata());
        return List.of();
    }

    /** One of partition 0, for a group that has no members, or as the member of a generation. */
    private static List<String> sendOffset(KafkaProducer<String, String> producer, List<String> words) {
        boolean isMember = words.size() > 3;
        ConsumerGroupMetadata group = new ConsumerGroupMetadata(
            words.get(0), isMember ? Integer.parseInt(words.get(3)) : -1, isMember ? words.get(4) : "", Optional.empty());
        OffsetAndMetadata offset = new OffsetAndMetadata(Long.parseLong(words.get(2)));
        producer.sendOffsetsToTransaction(Map.of(new TopicPartition(words.get(1), 0), offset), group);
        return List.of();
    }

    private static List<String> poll(KafkaConsumer<String, String> consumer, Duration timeout) {
        List<String> found = new ArrayList<>();
        for (ConsumerRecord<String, String> each : consumer.poll(timeout))
            found.add(each.partition() + ":" + each.value());
        return found;
    }

    private static List<String> committed(KafkaConsumer<String, String> consumer, String topic, int partitions) {
        Set<TopicPartition> wanted = partitions(topic, partitions);
        List<String> found = new ArrayList<>();
        consumer.committed(wanted, TIMEOUT).forEach((partition, offset) -> {
            if (offset != null)
                found.add(partition.partition() + ":" + offset.offset());
        });
        return found;
    }

    /** Everything from the beginning to what is the end for this consumer's isolation level. */
    private static List<String> read(KafkaConsumer<String, String> consumer, String topic, int partitions) {
        Set<TopicPartition> wanted = partitions(topic, partitions);
        consumer.assign(wanted);
        consumer.seekToBeginning(wanted);
        Map<TopicPartition, Long> ends = consumer.endOffsets(wanted, TIMEOUT);
        List<String> found = new ArrayList<>();
        long deadline = System.nanoTime() + TIMEOUT.toNanos();
        while (wanted.stream().anyMatch(partition -> consumer.position(partition) < ends.get(partition))) {
            if (System.nanoTime() > deadline)
                throw new IllegalStateException("not read to the end " + ends);
            found.addAll(poll(consumer, Duration.ofMillis(100)));
        }
        return found;
    }

    private static Set<TopicPartition> partitions(String topic, int count) {
        return IntStream.range(0, count).mapToObj(number -> new TopicPartition(topic, number)).collect(Collectors.toSet());
    }
}
