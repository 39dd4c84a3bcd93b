import java.util.Map;
import java.util.TreeMap;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.server.config.DynamicBrokerConfig;
import org.apache.kafka.storage.internals.log.LogConfig;

/** Prints every broker and topic key of this Kafka: where, name, type, default, importance, how it changes (tests/unit/config/kafka_keys.tsv). */
public class ConfigKeys {
    public static void main(String[] arguments) {
        print("broker", kafka.server.KafkaConfig.configDef(), DynamicBrokerConfig.dynamicConfigUpdateModes());
        print("topic", LogConfig.configDefCopy(), Map.of());
    }

    private static void print(String where, ConfigDef keys, Map<String, String> modes) {
        for (ConfigDef.ConfigKey key : new TreeMap<>(keys.configKeys()).values()) {
            String value = key.defaultValue == ConfigDef.NO_DEFAULT_VALUE ? "<required>"
                : key.defaultValue == null ? "<null>" : ConfigDef.convertToString(key.defaultValue, key.type);
            System.out.println(String.join("\t", where, key.name, key.type.name(), value, key.importance.name(),
                modes.getOrDefault(key.name, "read-only")));
        }
    }
}
