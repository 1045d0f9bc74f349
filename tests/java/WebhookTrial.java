import com.sun.net.httpserver.HttpServer;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.time.Instant;
import java.util.List;

/** Receives webhooks and prints the port it listens on, then what it makes of each request, one line each: the trusted secrets are the arguments. */
public final class WebhookTrial {
    public static void main(String[] secrets) throws Exception {
        BridgeWebhook webhook = new BridgeWebhook(List.of(secrets));
        HttpServer server = HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0), 0);
        server.createContext("/", exchange -> {
            byte[] body = exchange.getRequestBody().readAllBytes();
            var headers = exchange.getRequestHeaders();
            String id = headers.getFirst("webhook-id");
            String timestamp = headers.getFirst("webhook-timestamp");
            String signatures = headers.getFirst("webhook-signature");
            boolean genuine = webhook.isGenuine(id, timestamp, signatures, body, Instant.now());
            body[body.length / 2] ^= 1;
            boolean changed = webhook.isGenuine(id, timestamp, signatures, body, Instant.now());
            body[body.length / 2] ^= 1;
            boolean old = webhook.isGenuine(id, timestamp, signatures, body, Instant.now().plusSeconds(600));
            System.out.println(id + " genuine=" + genuine + " changed=" + changed + " old=" + old);
            exchange.sendResponseHeaders(genuine ? 204 : 401, -1);
            exchange.close();
        });
        server.start();
        System.out.println(server.getAddress().getPort());
    }
}
