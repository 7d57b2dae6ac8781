package example;

import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Configuration;
import org.springframework.messaging.handler.annotation.MessageMapping;
import org.springframework.messaging.handler.annotation.SendTo;
import org.springframework.messaging.simp.annotation.SendToUser;
import org.springframework.messaging.simp.config.MessageBrokerRegistry;
import org.springframework.stereotype.Controller;
import org.springframework.web.socket.config.annotation.EnableWebSocketMessageBroker;
import org.springframework.web.socket.config.annotation.StompEndpointRegistry;
import org.springframework.web.socket.config.annotation.WebSocketMessageBrokerConfigurer;

/** Browsers speak with this program over WebSocket, and it with the broker over STOMP. */
@SpringBootApplication
public class Kitchen {
    public static void main(String[] arguments) {
        SpringApplication.run(Kitchen.class, arguments);
    }

    @Configuration
    @EnableWebSocketMessageBroker
    static class Messaging implements WebSocketMessageBrokerConfigurer {
        @Value("${broker.host}")
        private String host;

        @Value("${broker.port}")
        private int port;

        @Value("${broker.user}")
        private String user;

        @Value("${broker.password}")
        private String password;

        @Override
        public void configureMessageBroker(MessageBrokerRegistry registry) {
            registry.setApplicationDestinationPrefixes("/app");
            registry.enableStompBrokerRelay("/queue/", "/topic/")
                    .setRelayHost(host)
                    .setRelayPort(port)
                    .setClientLogin(user)
                    .setClientPasscode(password)
                    .setSystemLogin(user)
                    .setSystemPasscode(password)
                    .setUserDestinationBroadcast("/topic/unresolved-user-destination")
                    .setUserRegistryBroadcast("/topic/user-registry");
        }

        @Override
        public void registerStompEndpoints(StompEndpointRegistry registry) {
            registry.addEndpoint("/kitchen");
        }
    }

    @Controller
    static class Orders {
        @MessageMapping("/orders")
        @SendTo("/topic/cooked")
        String cook(String order) {
            return "cooked " + order;
        }

        @MessageMapping("/bill")
        @SendToUser("/queue/bills")
        String bill(String order) {
            return "bill for " + order;
        }
    }
}
