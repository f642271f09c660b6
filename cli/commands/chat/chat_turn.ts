import type { Api } from "../../../src/http/app.ts";
import { ServiceError } from "../../../src/domain/error.ts";
import { isEndedTask } from "../../../src/domain/vocabulary.ts";
import type { BaseContext } from "../command.ts";
import { EXIT, Exit } from "../../terminal/exit.ts";
import { type Reply, ReplyStream } from "../../client/reply_stream.ts";
import { retryRead } from "../../client/retry.ts";
import { Spinner } from "../../terminal/spinner.ts";
import { escapeControls } from "../../terminal/visible.ts";

type Trace = Api["GET /api/messages/:id/trace"]["response"];

// Something else may be going on in the conversation, which the stream does not tell apart.
const POLL_MS = 2_000;

/** Who is told of questions, and may be typing an answer just then. */
interface QuestionListener {
  asked: (said: Reply) => void;
  /** Something is being typed, which hide() takes off the screen and show() brings back. */
  readonly open: boolean;
  hide: () => void;
  show: () => void;
}

/** How something is said. */
interface SendOptions {
  /** Called with the message's id as soon as it is stored. */
  accepted?: (messageId: string) => void;
  asking?: QuestionListener;
  /** The message that it replies to. */
  replyTo?: string | undefined;
}

/** A chat with the service in one local session: what is said, and what answers it. */
export class ChatTurn {
  readonly #context: BaseContext;
  readonly #id: string;
  /** The message that was said last, while its outcome is waited for. */
  #messageId: string | null = null;
  #printed = new Set<string>();
  #asking: QuestionListener | null = null;
  /** Messages that answer questions of it; null for one that could not be sent. */
  #answers: Promise<string | null>[] = [];
  #stopped = false;

  constructor(context: BaseContext, id: string) {
    this.#context = context;
    this.#id = id;
  }

  /**
   * Says `content` and prints what answers it and nothing else, until it is done (contract 8.8). Throws Exit 124 after `limitMs`, and
   * Exit 8 when what it brought about failed or was cancelled, or nobody was found for it.
   */
  async say(
    content: string,
    limitMs: number,
    { accepted = () => {}, asking, replyTo }: SendOptions = {},
  ): Promise<void> {
    const { client, io } = this.#context;
    const params = { id: this.#id };
    this.#stopped = false;
    const stream = await this.#open(undefined);
    const { value } = await client.call("POST /api/local/sessions/:id/messages", {
      params,
      body: { content, alone: true, ...(replyTo === undefined ? {} : { reply_to: replyTo }) },
    });
    this.#asking = asking ?? null;
    const id = this.#messageId = value.message_id;
    accepted(id);
    const onward = `it goes on: svc ctl message trace ${id}`;
    try {
      const until = performance.now() + limitMs;
      const traces = [await this.#follow(stream, id, until)];
      // An answer that its run did not see any more became a task of its own.
      for (let answer = this.#answers.shift(); answer !== undefined; answer = this.#answers.shift()) {
        const messageId = await answer;
        if (messageId !== null) {
          traces.push(await this.#follow(await this.#open(undefined), messageId, until));
        }
      }
      if (traces.includes("late")) {
        throw new Exit(EXIT.timedOut, `No end of it after ${limitMs / 1000} s; ${onward}`);
      }
      const silent = this.#printed.size === 0 && replyTo === undefined;
      if (silent && !this.#stopped) this.#context.note("no reply");
      for (const trace of traces) if (trace !== null && trace !== "late") throwUnlessDone(trace);
    } catch (error) {
      const { errIsTerminal, signal } = io;
      if (signal.aborted && errIsTerminal) this.#context.note(`\nleft; ${onward}`);
      throw error;
    } finally {
      this.#messageId = null;
      this.#asking = null;
      this.#answers = [];
      this.#printed = new Set();
    }
  }

  /** Answers a question while what was said last is still going on; say() goes on with what comes of it. */
  answer(content: string, replyTo: string): void {
    const { client, note, out } = this.#context;
    const body = { content, alone: true, reply_to: replyTo };
    const params = { id: this.#id };
    this.#answers.push(
      client.call("POST /api/local/sessions/:id/messages", { params, body }).then(
        ({ value }) => value.message_id,
        (error) => {
          note(out.style.red(`svc: ${escapeControls(String(error.message))}`));
          return null;
        },
      ),
    );
  }

  /** Ends what the last message brought about, as far as it has come. Returns how many runs and tasks that were. */
  async stop(): Promise<number> {
    if (this.#messageId === null) return 0;
    this.#stopped = true;
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
        : client.call("POST /api/tasks/:id/cancel", { params: { id }, body: {} })).catch(ignoreConflict);
    }
    return open.length;
  }

  // The trace when all is done; null when this token may not look into it.
  async #follow(stream: Response, messageId: string, until: number): Promise<Trace | null | "late"> {
    const { io, out, client } = this.#context;
    using spinner = new Spinner(io, out.style);
    spinner.show("sent");
    const print = (said: Reply, json: string) => {
      if (said.reply_to !== messageId || this.#printed.has(said.id)) return;
      this.#printed.add(said.id);
      const typing = this.#asking?.open ?? false;
      if (typing) this.#asking?.hide();
      else spinner.clear();
      this.#print(said, json);
      if (typing) this.#asking?.show();
      if (!said.question_id) return;
      if (this.#asking !== null) {
        spinner.stop();
        this.#asking.asked(said);
      } else if (out.format !== "json") {
        this.#context.note(`to answer: svc ctl question answer ${said.question_id} <text>`);
      }
    };
    // What is being typed has the line for itself.
    const state = (words: string) => this.#asking?.open ? spinner.stop() : spinner.show(words);
    const listener = { reply: print, state };
    let replies = new ReplyStream(stream, undefined, listener);
    try {
      while (true) {
        const left = until - performance.now();
        if (left <= 0) return "late";
        const bounds = {
          signal: io.signal,
          withinMs: Math.min(client.reconnectMs, left),
          onward: `it goes on: svc ctl message trace ${messageId}`,
        };
        const { idle, lost } = await replies.next(Math.min(POLL_MS, left));
        if (io.signal.aborted) throw io.signal.reason;
        if (lost) {
          replies = new ReplyStream(
            await retryRead(() => this.#open(replies.after), bounds),
            replies.after,
            listener,
          );
        }
        const trace = await retryRead(() => this.#trace(messageId), bounds);
        if (trace === null ? !idle : !isDone(trace)) continue;
        spinner.stop();
        // What the stream has not brought yet.
        for (const reply of (trace?.replies ?? []).filter(({ status }) => status === "sent")) {
          const said = toReply(reply);
          print(said, JSON.stringify(said));
        }
        return trace;
      }
    } finally {
      await replies.close();
    }
  }

  #open(after: number | undefined): Promise<Response> {
    return this.#context.client.open("GET /api/local/sessions/:id/stream", {
      params: { id: this.#id },
      query: after === undefined ? {} : { after },
    });
  }

  #print(said: Reply, json: string): void {
    const { io, out, note } = this.#context;
    if (out.format === "json") return out.line(json);
    if (out.format === "ids") return out.line(said.id);
    if (io.outIsTerminal && said.worker_name) note(out.style.dim(`${escapeControls(said.worker_name)}:`));
    if (!io.outIsTerminal) return out.line(said.content);
    // What an agent says must not drive the operator's terminal.
    if (said.media) out.line(formatFile(said.media));
    if (said.content !== "" || !said.media) out.line(escapeControls(said.content));
  }

  // A token that may chat need not be one that may look into what came of it.
  async #trace(id: string): Promise<Trace | null> {
    try {
      return (await this.#context.client.call("GET /api/messages/:id/trace", { params: { id } })).value;
    } catch (error) {
      if (error instanceof ServiceError && error.code === "forbidden") return null;
      throw error;
    }
  }
}

// What waits for its time is no part of the answer.
function isDone({ message, tasks }: Trace): boolean {
  if (message.status === "received" || message.status === "feeding") return false;
  return tasks.every(({ status }) => isEndedTask(status) || status === "scheduled");
}

function throwUnlessDone({ message, tasks }: Trace): void {
  const task = tasks.find(({ status }) => status === "failed" || status === "cancelled");
  if (task !== undefined) {
    throw new Exit(EXIT.awaitedFailed, `task ${task.id} ${task.status}: ${task.reason}`);
  }
  if (message.status === "failed") throw new Exit(EXIT.awaitedFailed, `message ${message.id} failed`);
  if (message.routed === "nobody") throw new Exit(EXIT.awaitedFailed, "nobody was found for it");
}

function toReply(
  { id, content, sent_at: ts, source_type, source_id, media, message_id, question_id }:
    Trace["replies"][number],
) {
  return {
    id,
    role: "bee",
    content,
    ts,
    source_type,
    source_id,
    worker_name: "",
    media,
    reply_to: message_id,
    question_id: question_id === "" ? null : question_id,
  };
}

// A file has a name, and words about it may be missing.
function formatFile({ name, size, mime }: { name: string; size: number; mime: string }): string {
  return escapeControls(`[file ${name}, ${mime}, ${size} bytes]`);
}

function ignoreConflict(error: unknown): void {
  if (!(error instanceof ServiceError) || error.code !== "conflict") throw error;
}
