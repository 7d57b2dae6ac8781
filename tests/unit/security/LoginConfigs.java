import java.io.DataInputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.Principal;
import java.security.URIParameter;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import javax.security.auth.Subject;
import javax.security.auth.callback.CallbackHandler;
import javax.security.auth.login.AppConfigurationEntry;
import javax.security.auth.login.Configuration;
import javax.security.auth.login.FailedLoginException;
import javax.security.auth.login.LoginContext;
import javax.security.auth.login.LoginException;
import javax.security.auth.spi.LoginModule;

/**
 * Reads each text of its input as a login.config. Prints the modules of the domains d, other and two words, or, for the
 * argument login, who logs in to d; one text on a line.
 */
public class LoginConfigs {
    public static void main(String[] arguments) throws Exception {
        boolean isLogin = arguments.length > 0 && arguments[0].equals("login");
        Thread.currentThread().setContextClassLoader(LoginConfigs.class.getClassLoader());
        System.setProperty("user", "ann");
        System.setProperty("empty", "");
        Path file = Files.createTempFile("login", ".config");
        DataInputStream in = new DataInputStream(System.in);
        PrintStream out = new PrintStream(new FileOutputStream(FileDescriptor.out), false, "UTF-8");
        for (int left = in.readInt(); left > 0; left--) {
            byte[] text = new byte[in.readInt()];
            in.readFully(text);
            Files.write(file, text);
            out.println(isLogin ? loggedIn(file) : listed(file));
        }
        out.flush();
        Files.delete(file);
    }

    private static Configuration read(Path file) throws Exception {
        return Configuration.getInstance("JavaLoginConfig", new URIParameter(file.toUri()));
    }

    private static String listed(Path file) {
        StringBuilder said = new StringBuilder();
        try {
            Configuration found = read(file);
            for (String domain : new String[] {"d", "other", "two words"}) {
                AppConfigurationEntry[] entries = found.getAppConfigurationEntry(domain);
                for (AppConfigurationEntry each : entries == null ? new AppConfigurationEntry[0] : entries) {
                    Map<String, Object> options = new TreeMap<>(each.getOptions());
                    String flag = each.getControlFlag().toString().replaceAll(".*: ", "");
                    said.append(domain).append('|').append(each.getLoginModuleName()).append('|').append(flag);
                    options.forEach((key, value) -> said.append('|').append(key).append('=').append(value));
                    said.append('\n');
                }
            }
        } catch (Exception | Error refused) {
            return "refused";
        }
        return hex(said.toString());
    }

    private static String hex(String text) {
        StringBuilder said = new StringBuilder("x");
        for (byte each : text.getBytes(StandardCharsets.UTF_8)) {
            said.append(String.format("%02x", each));
        }
        return said.toString();
    }

    private static String loggedIn(Path file) throws Exception {
        Subject subject = new Subject();
        try {
            new LoginContext("d", subject, null, read(file)).login();
        } catch (LoginException refused) {
            return "refused";
        }
        TreeSet<String> names = new TreeSet<>();
        subject.getPrincipals().forEach(each -> names.add(each.getName()));
        return String.join(",", names);
    }

    /** Does what its options say. */
    public static class Scripted implements LoginModule {
        private Subject subject;
        private String name;
        private String word;
        private boolean hasSucceeded;

        @Override
        public void initialize(Subject subject, CallbackHandler none, Map<String, ?> state, Map<String, ?> options) {
            this.subject = subject;
            name = (String) options.get("name");
            word = (String) options.get("word");
        }

        @Override
        public boolean login() throws LoginException {
            if (word.equals("no")) {
                throw new FailedLoginException("no");
            }
            hasSucceeded = !word.equals("silent");
            return hasSucceeded;
        }

        @Override
        public boolean commit() throws LoginException {
            if (word.equals("fails_at_the_end")) {
                throw new FailedLoginException("late");
            }
            if (hasSucceeded) {
                String mine = name;
                subject.getPrincipals().add(new Principal() {
                    @Override
                    public String getName() {
                        return mine;
                    }
                });
            }
            return hasSucceeded;
        }

        @Override
        public boolean abort() {
            return true;
        }

        @Override
        public boolean logout() {
            return true;
        }
    }
}
