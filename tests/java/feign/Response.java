package feign;

import java.io.ByteArrayInputStream;
import java.io.InputStream;
import java.util.Collection;
import java.util.Map;

/** As much of Feign's class as the decoder of docs/java touches, so that it compiles and runs without Feign. */
public final class Response {
    private final int status;
    private final Map<String, Collection<String>> headers;
    private final byte[] body;

    public Response(int status, Map<String, Collection<String>> headers, byte[] body) {
        this.status = status;
        this.headers = headers;
        this.body = body;
    }

    public int status() {
        return status;
    }

    public Map<String, Collection<String>> headers() {
        return headers;
    }

    public Body body() {
        return body == null ? null : () -> new ByteArrayInputStream(body);
    }

    public Builder toBuilder() {
        return new Builder();
    }

    public interface Body {
        InputStream asInputStream();
    }

    public final class Builder {
        private byte[] changed = body;

        public Builder body(byte[] bytes) {
            changed = bytes;
            return this;
        }

        public Response build() {
            return new Response(status, headers, changed);
        }
    }
}
