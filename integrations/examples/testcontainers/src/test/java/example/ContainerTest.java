package example;

import static org.junit.jupiter.api.Assertions.assertEquals;

import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import org.junit.jupiter.api.Test;
import org.testcontainers.containers.GenericContainer;
import org.testcontainers.containers.wait.strategy.Wait;
import org.testcontainers.junit.jupiter.Container;
import org.testcontainers.junit.jupiter.Testcontainers;

@Testcontainers
class ContainerTest {
    @Container
    private static final GenericContainer<?> BROKER = new GenericContainer<>("artemis-py")
            .withEnv("BROKER_SECURITY", "false")
            .withExposedPorts(61613, 8161)
            .waitingFor(Wait.forHttp("/health/ready").forPort(8161));

    @Test
    void anOrderComesBack() throws Exception {
        ask("orders?routing-type=ANYCAST", "two coffees");
        assertEquals("two coffees", ask("orders/take", "").body());
    }

    /** Messages over HTTP; STOMP is at BROKER.getMappedPort(61613). */
    private static HttpResponse<String> ask(String path, String body) throws Exception {
        String url = "http://" + BROKER.getHost() + ":" + BROKER.getMappedPort(8161) + "/messages/" + path;
        HttpRequest request = HttpRequest.newBuilder(URI.create(url)).POST(BodyPublishers.ofString(body)).build();
        return HttpClient.newHttpClient().send(request, BodyHandlers.ofString());
    }
}
