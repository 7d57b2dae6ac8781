package example;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A broker for tests, in memory and on free ports: artemis-py test-broker, which ends with this JVM. */
final class TestBroker implements AutoCloseable {
    final String stompUrl;
    final String httpUrl;
    private final Process process;

    /** The command is in the environment variable ARTEMIS_PY, or else artemis-py of the PATH. */
    TestBroker(String... arguments) throws IOException {
        String command = System.getenv().getOrDefault("ARTEMIS_PY", "artemis-py");
        List<String> words = new ArrayList<>(List.of(command.split(" ")));
        words.add("test-broker");
        words.addAll(List.of(arguments));
        process = new ProcessBuilder(words).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        BufferedReader said =
                new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.UTF_8));
        String line = said.readLine();
        if (line == null) {
            throw new IOException("the broker has not started: " + String.join(" ", words));
        }
        stompUrl = field(line, "url");
        httpUrl = field(line, "http_url");
    }

    /** Ends the broker: its standard input is closed, as it is when this JVM ends. */
    @Override
    public void close() throws IOException, InterruptedException {
        process.getOutputStream().close();
        process.waitFor();
    }

    private static String field(String json, String name) {
        Matcher found = Pattern.compile('"' + name + "\": \"([^\"]*)\"").matcher(json);
        if (!found.find()) {
            throw new IllegalStateException("no " + name + " in " + json);
        }
        return found.group(1);
    }
}
