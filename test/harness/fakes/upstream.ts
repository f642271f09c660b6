import { createServer, type IncomingMessage, type ServerResponse } from "node:http";

/** A request as the upstream of a gateway got it. */
export interface ReceivedRequest {
  method: string;
  url: string;
  headers: IncomingMessage["headers"];
  body: string;
}

/** An HTTP server behind a gateway. The test decides what it answers. */
export class Upstream implements AsyncDisposable {
  readonly received: ReceivedRequest[] = [];
  /** Answers a request whose body has arrived. */
  answer: (request: ReceivedRequest, response: ServerResponse) => void | Promise<void> = (
    _request,
    response,
  ) => {
    response.end("ok");
  };
  readonly #server = createServer((request, response) => void this.#take(request, response));
  /** Responses that have not ended. */
  readonly open = new Set<ServerResponse>();

  static async start(): Promise<Upstream> {
    const upstream = new Upstream();
    await new Promise<void>((resolve) => upstream.#server.listen(0, "127.0.0.1", () => resolve()));
    return upstream;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as { port: number }).port}`;
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.open.add(response);
    response.on("close", () => this.open.delete(response));
    let body = "";
    request.setEncoding("utf8");
    for await (const piece of request) body += piece;
    const { method = "", url = "", headers } = request;
    const received = { method, url, headers, body };
    this.received.push(received);
    await this.answer(received, response);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const response of this.open) response.destroy();
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }
}

/** Formats an event stream. A text is sent as it is, so `[DONE]` is one. */
export function formatEvents(...events: (object | string)[]): string {
  return events.map((event) => {
    const name = typeof event === "object" && "type" in event ? `event: ${event.type}\n` : "";
    return `${name}data: ${typeof event === "string" ? event : JSON.stringify(event)}\n\n`;
  }).join("");
}

/** The events of a message of Anthropic with this usage. */
export function buildMessageEvents(input: number, output: number): object[] {
  return [
    { type: "message_start", message: { id: "msg_1", usage: { input_tokens: input, output_tokens: 1 } } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Hello" } },
    { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: output } },
    { type: "message_stop" },
  ];
}
