import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.InputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Scanner;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs several Kafka tools one after another in one JVM.
 * A line of input is one run: standard input, class and arguments, each in base64, separated by blanks.
 * A line of output is its result: exit code, standard output and standard error, in the same way.
 */
public class Batch {
    /** Unwinds the tool that wanted to exit. Some tools catch it and exit once more, so only the first time counts. */
    private static final class Exited extends Error {
        Exited() {
            super(null, null, false, false);
        }
    }

    private static ByteArrayOutputStream out;
    private static ByteArrayOutputStream err;
    private static String result;

    private static void end(int code) {
        if (result == null)
            result = code + " " + encode(out) + " " + encode(err);
    }

    public static void main(String[] ignored) throws Exception {
        PrintStream results = System.out;
        InputStream runs = System.in;
        Exit.setExitProcedure((code, message) -> { end(code); throw new Exited(); });
        Exit.setHaltProcedure((code, message) -> { end(code); throw new Exited(); });
        Scanner lines = new Scanner(runs, StandardCharsets.US_ASCII);
        while (lines.hasNextLine()) {
            String[] words = lines.nextLine().split(" ");
            String[] arguments = new String[words.length - 2];
            for (int i = 0; i < arguments.length; i++)
                arguments[i] = new String(decode(words[i + 2]), StandardCharsets.UTF_8);
            out = new ByteArrayOutputStream();
            err = new ByteArrayOutputStream();
            result = null;
            System.setIn(new ByteArrayInputStream(decode(words[0])));
            System.setOut(new PrintStream(out, true));
            System.setErr(new PrintStream(err, true));
            end(run(new String(decode(words[1]), StandardCharsets.UTF_8), arguments));
            results.println(result);
            results.flush();
        }
        System.exit(0);
    }

    private static int run(String tool, String[] arguments) {
        try {
            Class.forName(tool).getMethod("main", String[].class).invoke(null, (Object) arguments);
            return 0;
        } catch (InvocationTargetException failed) {
            failed.getCause().printStackTrace();
            return 1;
        } catch (ReflectiveOperationException failed) {
            failed.printStackTrace();
            return 1;
        }
    }

    // "-" keeps an empty word visible between two blanks.
    private static byte[] decode(String word) {
        return word.equals("-") ? new byte[0] : Base64.getDecoder().decode(word);
    }

    private static String encode(ByteArrayOutputStream bytes) {
        return bytes.size() == 0 ? "-" : Base64.getEncoder().encodeToString(bytes.toByteArray());
    }
}
