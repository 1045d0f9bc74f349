import java.io.IOException;
import java.io.InputStream;
import java.net.HttpURLConnection;
import java.net.URI;
import java.nio.charset.StandardCharsets;

/**
 * Calls v1 as Feign's default client does: a plain HttpURLConnection, POST, no body.
 *
 * <pre>java LegacyCaller.java METHOD URL [READ_TIMEOUT_MILLIS]</pre>
 *
 * Prints the status, the headers that matter and the body, one to a line; an I/O error as "error=…".
 *
 * What to know: when a connection dies after the request was sent and before the first byte of the answer, the JDK sends the request once more by
 * itself, POST or not (sun.net.http.retryPost is on unless you switch it off). Feign never hears of it. The bridge joins such a repeat to the task that
 * runs, so it costs nothing; of other services you may call this way you should not be so sure.
 */
public final class LegacyCaller {
    public static void main(String[] arguments) throws IOException {
        String method = arguments[0];
        int readTimeout = arguments.length > 2 ? Integer.parseInt(arguments[2]) : 15 * 60 * 1000;
        HttpURLConnection connection = (HttpURLConnection) URI.create(arguments[1]).toURL().openConnection();
        connection.setRequestMethod(method);
        connection.setConnectTimeout(10_000);
        connection.setReadTimeout(readTimeout);
        try {
            int status = connection.getResponseCode();
            System.out.println("status=" + status);
            for (String name : new String[] {"Task-Id", "Error-Source", "Location", "Content-Type", "Deprecation"}) {
                System.out.println(name.toLowerCase() + "=" + connection.getHeaderField(name));
            }
            try (InputStream body = status < 400 ? connection.getInputStream() : connection.getErrorStream()) {
                System.out.println("body=" + (body == null ? "" : new String(body.readAllBytes(), StandardCharsets.UTF_8)));
            }
        } catch (IOException error) {
            System.out.println("error=" + error);
        }
    }
}
