import feign.Response;
import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.URI;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;

/** Calls each URL as Feign does and prints what the decoder makes of the answer, one line each. */
public final class DecoderTrial {
    public static void main(String[] urls) throws Exception {
        for (String url : urls) {
            HttpURLConnection connection = (HttpURLConnection) URI.create(url).toURL().openConnection();
            connection.setRequestMethod("POST");
            connection.setRequestProperty("Prefer", "wait=1");
            int status = connection.getResponseCode();
            Map<String, Collection<String>> headers = new HashMap<>();
            connection.getHeaderFields().forEach((name, values) -> {
                if (name != null) {
                    headers.put(name, values);
                }
            });
            byte[] body;
            try (InputStream stream = status < 400 ? connection.getInputStream() : connection.getErrorStream()) {
                body = stream == null ? null : stream.readAllBytes();
            }
            Exception exception = new ProtocolErrorDecoder().decode("merge", new Response(status, headers, body));
            String task = exception instanceof StillGenerating still ? " task=" + still.taskId() : "";
            System.out.println(status + " " + exception.getClass().getSimpleName() + task + " " + exception.getMessage());
        }
    }
}
