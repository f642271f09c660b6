import type { App } from "./service/app.ts";

/** Calls a tool with raw JSON arguments that no client library would send. */
export class McpCaller {
  readonly #app: App;
  #id = 0;

  constructor(app: App) {
    this.#app = app;
  }

  async call(name: string, args: string): Promise<{ status: number; text: string }> {
    const head = `{"jsonrpc":"2.0","id":${++this.#id},"method":"tools/call","params":{"name":${
      JSON.stringify(name)
    },`;
    const response = await this.#app.server.fetch(
      new Request("http://localhost/mcp", {
        method: "POST",
        headers: {
          authorization: `Bearer ${await this.#app.token()}`,
          "content-type": "application/json",
          accept: "application/json, text/event-stream",
          "mcp-protocol-version": "2025-06-18",
        },
        body: `${head}"arguments":${args}}}`,
      }),
    );
    return { status: response.status, text: await response.text() };
  }
}
