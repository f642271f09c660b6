import { startStub } from "./stub_model/stub.mjs";

/** A scripted model for agent CLIs. Commands in [[…]] in a prompt control it. */
export interface Model extends AsyncDisposable {
  url: string;
  /** Answers every request like a provider whose limit is reached; null for no limit. */
  limit: ((path: string) => Response) | null;
  /** Provider headers that every response gets. */
  headers: Record<string, string>;
  onRequest: (request: Request) => void;
  /** Gets the body of every request, when set. */
  onBody: ((body: string) => void) | null;
}

/** Starts the scripted model behind a proxy that can refuse requests like a provider. */
export async function startModel(): Promise<Model> {
  const stub = await startStub();
  const model: Model = {
    url: "",
    limit: null,
    headers: {},
    onRequest: () => {},
    onBody: null,
    async [Symbol.asyncDispose]() {
      // A request without a response would delay the stop permanently.
      end.abort();
      await Promise.all([proxy.finished, stub.close()]);
    },
  };
  const end = new AbortController();
  const options = { port: 0, hostname: "127.0.0.1", onListen: () => {}, signal: end.signal };
  const proxy = Deno.serve(options, async (request) => {
    const { pathname, search } = new URL(request.url);
    const { method, headers } = request;
    if (method === "POST") model.onRequest(request);
    const text = model.onBody !== null && method === "POST" ? await request.text() : null;
    if (text !== null) model.onBody?.(text);
    const body = text ?? request.body;
    if (method === "POST" && model.limit !== null) return model.limit(pathname);
    try {
      const answer = await fetch(stub.url + pathname + search, { method, headers, body, redirect: "manual" });
      const { status } = answer;
      return new Response(answer.body, {
        status,
        headers: [...answer.headers, ...Object.entries(model.headers)],
      });
    } catch {
      return new Response("the model is gone", { status: 502 });
    }
  });
  model.url = `http://127.0.0.1:${proxy.addr.port}`;
  return model;
}
