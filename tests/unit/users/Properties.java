import java.io.ByteArrayInputStream;
import java.io.DataInputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.PrintStream;
import java.util.TreeSet;

/** Loads each text of its input as properties, and prints keys and values in hexadecimal, one text on a line. */
public class Properties {
    public static void main(String[] none) throws Exception {
        DataInputStream in = new DataInputStream(System.in);
        PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), false, "US-ASCII");
        for (int left = in.readInt(); left > 0; left--) {
            byte[] text = new byte[in.readInt()];
            in.readFully(text);
            out.println(loaded(text));
        }
        out.flush();
    }

    private static String loaded(byte[] text) throws Exception {
        java.util.Properties found = new java.util.Properties();
        try {
            found.load(new ByteArrayInputStream(text));
        } catch (IllegalArgumentException refused) {
            return "refused";
        }
        StringBuilder said = new StringBuilder();
        for (String key : new TreeSet<>(found.stringPropertyNames())) {
            for (char each : (key + "\0" + found.getProperty(key) + "\1").toCharArray()) {
                said.append(String.format("%04x", (int) each));
            }
        }
        return said.toString();
    }
}
