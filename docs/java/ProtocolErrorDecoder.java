import feign.Response;
import feign.codec.ErrorDecoder;
import java.io.IOException;
import java.io.InputStream;

/** Turns the bridge's "still generating" into an exception of its own; everything else stays what Feign makes of it. */
public final class ProtocolErrorDecoder implements ErrorDecoder {
    private final ErrorDecoder standard = new ErrorDecoder.Default();

    @Override
    public Exception decode(String methodKey, Response response) {
        byte[] body = bytes(response);
        BridgeAnswer answer = BridgeAnswer.read(response.status(), response.headers(), body);
        if (answer.goesOn()) {
            return new StillGenerating(answer.taskId().orElse(null));
        }
        // The body was read above and can be read only once: the standard decoder gets it back.
        return standard.decode(methodKey, response.toBuilder().body(body).build());
    }

    private static byte[] bytes(Response response) {
        if (response.body() == null) {
            return new byte[0];
        }
        try (InputStream body = response.body().asInputStream()) {
            return body.readAllBytes();
        } catch (IOException broken) {
            return new byte[0];
        }
    }
}
