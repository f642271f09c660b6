import type { Api } from "../../../src/http/app.ts";
import { ServiceError } from "../../../src/domain/call/error.ts";
import { isEndedTask } from "../../../src/domain/call/vocabulary.ts";
import type { BaseContext } from "../command.ts";
import { HoldNotice } from "../work/hold.ts";
import { EXIT, Exit } from "../../terminal/exit.ts";
import { type Reply, ReplyStream } from "../../client/reply_stream.ts";
import { retryRead } from "../../client/retry.ts";
import { Spinner } from "../../terminal/spinner.ts";
import { renderMarkdown } from "../../terminal/markdown.ts";
import { escapeControls } from "../../terminal/visible.ts";

type Trace = Api["GET /api/messages/:id/trace"]["response"];

// The idle state covers the whole conversation, so the trace of the message is polled, too.
const POLL_MS = 2_000;

/** Shows questions of the agent, and owns the line while the user types an answer. */
interface QuestionListener {
  asked: (said: Reply) => void;
  /** Whether the user is typing an answer. */
  readonly open: boolean;
  hide: () => void;
  show: () => void;
}

interface SendOptions {
  /** Called with the ID of the stored message. */
  accepted?: (messageId: string) => void;
  asking?: QuestionListener;
  replyTo?: string | undefined;
}

/** A message to a local session, and the replies to it. */
export class ChatTurn {
  readonly #context: BaseContext;
  readonly #id: string;
  /** The latest message, while its work is open. */
  #messageId: string | null = null;
  #printed = new Set<string>();
  #asking: QuestionListener | null = null;
  /** Messages that answer questions; null for a message that could not be sent. */
  #answers: Promise<string | null>[] = [];
  #stopped = false;
  /** The worker of the latest reply, for the next line of a prompt. */
  workerName = "";

  constructor(context: BaseContext, id: string) {
    this.#context = context;
    this.#id = id;
  }

  /**
   * Sends `content` and prints only its replies, until the work is done (contract 8.8). Throws Exit 124 after
   * `limitMs`, and Exit 8 if the work failed, was cancelled, or no worker matched.
   */
  async say(
    content: string,
    limitMs: number,
    { accepted = () => {}, asking, replyTo }: SendOptions = {},
  ): Promise<void> {
    const { client, io } = this.#context;
    const params = { id: this.#id };
    this.#stopped = false;
    this.workerName = "";
    const stream = await this.#open(undefined);
    const { value } = await client.call("POST /api/local/sessions/:id/messages", {
      params,
      body: { content, alone: true, ...(replyTo === undefined ? {} : { reply_to: replyTo }) },
    });
    this.#asking = asking ?? null;
    const id = this.#messageId = value.message_id;
    accepted(id);
    const nextStep = `The work continues: svc ctl message trace ${id}`;
    try {
      const until = performance.now() + limitMs;
      const traces = [await this.#follow(stream, id, until)];
      // An answer that arrives after the end of its run becomes a separate task.
      for (let answer = this.#answers.shift(); answer !== undefined; answer = this.#answers.shift()) {
        const messageId = await answer;
        if (messageId !== null) {
          traces.push(await this.#follow(await this.#open(undefined), messageId, until));
        }
      }
      if (traces.includes("late")) {
        throw new Exit(EXIT.timedOut, `Timed out after ${limitMs / 1000} s. ${nextStep}`);
      }
      const silent = this.#printed.size === 0 && replyTo === undefined;
      if (silent && !this.#stopped) this.#context.note("no reply");
      for (const trace of traces) if (trace !== null && trace !== "late") throwUnlessDone(trace);
    } catch (error) {
      const { errIsTerminal, signal } = io;
      if (signal.aborted && errIsTerminal) this.#context.note(`\nStopped waiting. ${nextStep}`);
      throw error;
    } finally {
      this.#messageId = null;
      this.#asking = null;
      this.#answers = [];
      this.#printed = new Set();
    }
  }

  /** Answers a question during say(), which then also waits for the work of the answer. */
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

  /** Cancels the open work of the latest message. Returns the number of runs and tasks. */
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
      // A run that has ended meanwhile is a conflict.
      await (running
        ? client.call("POST /api/executions/:id/cancel", { params: { id: execution_id }, body: {} })
        : client.call("POST /api/tasks/:id/cancel", { params: { id }, body: {} })).catch(ignoreConflict);
    }
    return open.length;
  }

  // Returns the trace when the work is done, or null if the token cannot read it.
  async #follow(stream: Response, messageId: string, until: number): Promise<Trace | null | "late"> {
    const { io, out, client } = this.#context;
    using spinner = new Spinner(io, out.style);
    spinner.show("sent");
    const hold = new HoldNotice(this.#context);
    const print = (said: Reply, json: string) => {
      if (said.reply_to !== messageId || this.#printed.has(said.id)) return;
      this.#printed.add(said.id);
      if (said.worker_name) this.workerName = said.worker_name;
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
    // While the user types an answer, the spinner must not write on that line.
    const showState = (words: string) => this.#asking?.open ? spinner.stop() : spinner.show(words);
    const listener = { reply: print, state: showState };
    let replies = new ReplyStream(stream, undefined, listener);
    try {
      while (true) {
        const left = until - performance.now();
        if (left <= 0) return "late";
        const bounds = {
          signal: io.signal,
          withinMs: Math.min(client.reconnectMs, left),
          nextStep: `The work continues: svc ctl message trace ${messageId}`,
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
        const waiting = trace?.tasks.find(({ status }) => status === "pending");
        // While the user types an answer, nothing else may use that line.
        if (waiting !== undefined && !this.#asking?.open && await hold.show(waiting, () => spinner.clear())) {
          spinner.show("on hold");
        }
        if (trace === null ? !idle : !isDone(trace)) continue;
        spinner.stop();
        // Prints replies that the stream has not sent yet.
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
    // Control characters in a reply must not reach the terminal.
    if (said.media) out.line(formatFile(said.media));
    if (said.content !== "" || !said.media) out.line(renderMarkdown(escapeControls(said.content), out.style));
  }

  // A caller may chat without the right to read the trace.
  async #trace(id: string): Promise<Trace | null> {
    try {
      return (await this.#context.client.call("GET /api/messages/:id/trace", { params: { id } })).value;
    } catch (error) {
      if (error instanceof ServiceError && error.code === "forbidden") return null;
      throw error;
    }
  }
}

// A scheduled task is not part of the reply.
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
  if (message.routed === "nobody") throw new Exit(EXIT.awaitedFailed, "no worker matched the message");
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

function formatFile({ original_name, size, mime }: NonNullable<Reply["media"]>): string {
  return escapeControls(`[file ${original_name}, ${mime}, ${size} bytes]`);
}

function ignoreConflict(error: unknown): void {
  if (!(error instanceof ServiceError) || error.code !== "conflict") throw error;
}
