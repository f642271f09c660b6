import { waitForValue } from "../../harness/wait.ts";

interface Attribute {
  key: string;
  value: { stringValue?: string; intValue?: number; doubleValue?: number; boolValue?: boolean };
}

/** A span as OTLP over HTTP has it in JSON. */
export interface ReceivedSpan {
  name: string;
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes: Attribute[];
}

/** A collector of traces that speaks OTLP over HTTP. */
export class Collector implements AsyncDisposable {
  readonly spans: ReceivedSpan[] = [];
  readonly requests: { path: string; key: string | null }[] = [];
  /** All bodies so far. */
  text = "";
  refused = 0;
  /** `dead`: answers 503. */
  mode: "ok" | "dead" = "ok";
  readonly #server = Deno.serve(
    { port: 0, hostname: "127.0.0.1", onListen() {} },
    (request) => this.#take(request),
  );

  get url(): string {
    return `http://127.0.0.1:${(this.#server.addr as Deno.NetAddr).port}`;
  }

  async #take(request: Request): Promise<Response> {
    const body = await request.text();
    if (this.mode === "dead") {
      this.refused++;
      return new Response(null, { status: 400 });
    }
    this.requests.push({ path: new URL(request.url).pathname, key: request.headers.get("x-key") });
    this.text += body;
    for (const { scopeSpans } of JSON.parse(body).resourceSpans) {
      for (const { spans } of scopeSpans) this.spans.push(...spans);
    }
    return Response.json({});
  }

  /** Waits until a span of this name has arrived, and returns all. */
  waitFor(name: string): Promise<ReceivedSpan[]> {
    const find = () => this.spans.some((span) => span.name === name) ? this.spans : null;
    return waitForValue(() => Promise.resolve(find()));
  }

  read(span: ReceivedSpan | undefined): Record<string, unknown> {
    return Object.fromEntries(
      (span?.attributes ?? []).map(({ key, value }) => [key, Object.values(value)[0]]),
    );
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.#server.shutdown();
  }
}
