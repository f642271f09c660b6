import { createParser } from "eventsource-parser";
import { ServiceError } from "../src/domain/error.ts";
import { isEndedTask } from "../src/domain/vocabulary.ts";
import type { Context } from "./command.ts";
import { EXIT, Exit } from "./exit.ts";
import { Spinner } from "./spinner.ts";
import { visible } from "./visible.ts";

/** A chat with the service in one local session: what is said, and what comes back. */
export class Conversation {
  readonly #context: Context;
  readonly #id: string;
  /** The message that was said last, while its outcome is waited for. */
  #messageId: string | null = null;

  constructor(context: Context, id: string) {
    this.#context = context;
    this.#id = id;
  }

  /**
   * Says `content` and prints what is answered, until nothing more is going on. Throws Exit 124 after `limitMs`, and Exit 8 when what
   * it brought about failed or was cancelled (contract 6).
   */
  async say(content: string, limitMs: number): Promise<void> {
    const { client } = this.#context;
    const params = { id: this.#id };
    const stream = await client.open("GET /api/local/sessions/:id/stream", { params });
    const { value } = await client.call("POST /api/local/sessions/:id/messages", {
      params,
      body: { content },
    });
    this.#messageId = value.message_id;
    try {
      await this.#printReplies(stream, value.message_id, limitMs);
      await this.#judge(value.message_id);
    } catch (error) {
      const { io, note } = this.#context;
      if (io.signal.aborted && io.errIsTerminal) {
        note(`\nleft; what was asked goes on: svc ctl message trace ${value.message_id}`);
      }
      throw error;
    } finally {
      this.#messageId = null;
    }
  }

  /** Ends what the last message brought about, as far as it has come. Returns how many runs and tasks that were. */
  async stop(): Promise<number> {
    if (this.#messageId === null) return 0;
    const { client } = this.#context;
    const { value: { tasks } } = await client.call("GET /api/messages/:id/trace", {
      params: { id: this.#messageId },
    });
    const open = tasks.filter(({ status }) => !isEndedTask(status));
    for (const { id, status, execution_id } of open) {
      const running = status === "running" && execution_id !== null;
      // Whatever has ended in the meantime needs no end.
      await (running
        ? client.call("POST /api/executions/:id/cancel", { params: { id: execution_id }, body: {} })
        : client.call("POST /api/tasks/:id/cancel", { params: { id }, body: {} })).catch(ignoreEnded);
    }
    return open.length;
  }

  async #printReplies(stream: Response, messageId: string, limitMs: number): Promise<void> {
    const { io, out, note } = this.#context;
    using spinner = new Spinner(io, out.style);
    spinner.show("sent");
    let over = false;
    let replies = 0;
    const parser = createParser({
      onEvent: ({ event, data }) => {
        if (over) return;
        const said = JSON.parse(data);
        if (event === "message") {
          replies++;
          spinner.clear();
          this.#print(said, data);
        } else if (event === "status" && said.state === "idle") over = true;
        else if (event === "status") spinner.show(stateInWords(said));
        else if (event === "end") {
          throw new ServiceError(
            "unavailable",
            `The conversation ended before the reply came: ${said.reason}`,
          );
        }
      },
    });
    const decoder = new TextDecoder();
    const reader = (stream.body as ReadableStream<Uint8Array>).getReader();
    const late = setTimeout(() => void reader.cancel("late"), limitMs);
    try {
      while (!over) {
        const { done, value } = await reader.read();
        if (done) {
          throw new Exit(
            EXIT.timedOut,
            `No end of it after ${limitMs / 1000} s; message ${messageId} goes on`,
          );
        }
        parser.feed(decoder.decode(value, { stream: true }));
      }
    } finally {
      clearTimeout(late);
      await reader.cancel().catch(() => {});
    }
    spinner.stop();
    if (replies === 0) note("no reply");
  }

  #print(said: Reply, json: string): void {
    const { io, out, note } = this.#context;
    if (out.format === "json") return out.line(json);
    if (out.format === "ids") return out.line(said.id);
    if (io.outIsTerminal && said.worker_name) note(out.style.dim(`${visible(said.worker_name)}:`));
    if (!io.outIsTerminal) return out.line(said.content);
    // What an agent says must not drive the operator's terminal.
    if (said.media) out.line(fileInWords(said.media));
    if (said.content !== "" || !said.media) out.line(visible(said.content));
  }

  async #judge(messageId: string): Promise<void> {
    const trace = await this.#context.client.call("GET /api/messages/:id/trace", {
      params: { id: messageId },
    })
      .catch((error) => {
        // A token that may chat need not be one that may look into what came of it.
        if (error instanceof ServiceError && error.code === "forbidden") return null;
        throw error;
      });
    const { tasks = [], parts = [] } = trace?.value ?? {};
    const task = tasks.find(({ status }) => status === "failed" || status === "cancelled");
    if (task !== undefined) {
      throw new Exit(EXIT.awaitedFailed, `task ${task.id} ${task.status}: ${task.reason}`);
    }
    if (parts.some(({ status }) => status === "failed")) {
      throw new Exit(EXIT.awaitedFailed, `message ${messageId} failed`);
    }
  }
}

interface Reply {
  id: string;
  content: string;
  worker_name?: string;
  media?: { name: string; size: number; mime: string } | null;
}

function stateInWords({ state, worker_name }: { state: string; worker_name: string }): string {
  const name = visible(worker_name);
  if (state === "working") return `${name} is working`;
  if (state === "queued") return name === "" ? "queued" : `queued for ${name}`;
  return state;
}

// A file has a name, and words about it may be missing.
function fileInWords({ name, size, mime }: { name: string; size: number; mime: string }): string {
  return visible(`[file ${name}, ${mime}, ${size} bytes]`);
}

function ignoreEnded(error: unknown): void {
  if (!(error instanceof ServiceError) || error.code !== "conflict") throw error;
}
