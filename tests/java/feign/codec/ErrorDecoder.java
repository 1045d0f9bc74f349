package feign.codec;

import feign.Response;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;

/** As Feign's, with a standard decoder that shows whether it could still read the body. */
public interface ErrorDecoder {
    Exception decode(String methodKey, Response response);

    class Default implements ErrorDecoder {
        @Override
        public Exception decode(String methodKey, Response response) {
            try {
                byte[] body = response.body().asInputStream().readAllBytes();
                return new IllegalStateException("[" + response.status() + "] " + new String(body, StandardCharsets.UTF_8));
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }
    }
}
