import { ServiceError } from "../../../src/domain/call/error.ts";
import { parseChatCommand } from "../../../src/domain/chat/chat_command.ts";
import { ChatPrompt } from "../../terminal/chat_prompt.ts";
import type { BaseContext } from "../command.ts";
import { ChatTurn } from "./chat_turn.ts";
import { Exit } from "../../terminal/exit.ts";
import type { Reply } from "../../client/reply_stream.ts";
import { escapeControls } from "../../terminal/visible.ts";

/** Options of a chat on a terminal. */
interface ChatLoopOptions {
  /** The session to continue, or null. */
  known: string | null;
  /** Creates a session for the first line. */
  begin: (line: string) => Promise<string>;
  /** The prefix of each line that does not answer a question. */
  mention: string;
  limitMs: number;
}

interface PendingQuestion {
  questionId: string;
  messageId: string;
  options: string[];
}

/**
 * Prompts on the terminal until Ctrl-D. After an error the prompt continues, and Ctrl-C ends only the current run. The
 * user can answer a question of the agent while its run waits, or with a later line (contract 12).
 */
export async function runChatLoop(
  context: BaseContext,
  { known, begin, mention, limitMs }: ChatLoopOptions,
): Promise<void> {
  const { io, note, out } = context;
  note(out.style.dim("/help shows the commands. Ctrl-C stops a run, Ctrl-D ends the chat."));
  let session = known;
  let conversation: ChatTurn | null = known === null ? null : new ChatTurn(context, known);
  using prompt = new ChatPrompt(io, "> ");
  const questions = new QuestionPrompt(context, prompt);
  const partner = new Partner(mention);
  let stopped = false;
  let stopping = Promise.resolve();
  prompt.onInterrupt = () => {
    stopped = true;
    stopping = (conversation?.stop() ?? Promise.resolve(0)).then(
      (count) => note(count === 0 ? "no run to stop" : "Stopped. You can continue the conversation."),
      (error) => note(`svc: ${escapeControls(String(error.message))}`),
    );
  };
  while (true) {
    const line = await questions.readLine();
    if (line === null) break;
    if (line.trim() === "") continue;
    if (/^\/(help|\?)$/i.test(line.trim())) {
      note(HELP);
      continue;
    }
    if (/^\/(quit|exit)$/i.test(line.trim())) break;
    stopped = false;
    try {
      session ??= await begin(line);
      const talking = conversation ??= new ChatTurn(context, session);
      await questions.dropIfClosed();
      const answer = questions.takeAnswer(line);
      await questions.listenDuring(
        talking,
        () =>
          answer === null
            ? talking.say(partner.address(line), limitMs, { asking: questions })
            : talking.say(answer.words, limitMs, { asking: questions, replyTo: answer.to }),
      );
      partner.remember(talking.workerName);
    } catch (error) {
      const canContinue = error instanceof Exit ||
        error instanceof ServiceError && error.code !== "unauthenticated";
      if (!canContinue || !(error instanceof Error)) throw error;
      // A user who pressed Ctrl-C needs no error message.
      if (!stopped) note(out.style.red(`svc: ${escapeControls(error.message)}`));
    }
    // The run may end before the request to stop it returns. The next prompt waits until that request has printed its message.
    await stopping;
  }
  note(session === null ? "" : `\nto continue: svc ctl chat --session ${session}`);
}

const HELP = `@Name <text>    talk to a worker, who then also gets your next lines
@all <text>     let the service choose the worker again
/answer <text>  answer the question of an agent
/status         show the work in this conversation
/stop           cancel the work in this conversation
/new            make every worker forget this conversation
/workers        list the workers
/help           show this
/quit           end the chat
Ctrl-C stops a run, Ctrl-D ends the chat.`;

/** The worker that gets the lines of a prompt without a mention: the one that the user mentioned last. */
class Partner {
  #mention: string;
  #isMentioning = false;

  constructor(mention: string) {
    this.#mention = mention;
  }

  /** Returns the line with the mention of the worker. A line with its own mention stays unchanged. */
  address(line: string): string {
    const words = line.trimStart();
    const all = /^@all\b\s*/i.exec(words);
    if (all !== null) {
      this.#mention = "";
      return words.slice(all[0].length);
    }
    this.#isMentioning = /^@\S/.test(words);
    if (parseChatCommand(words) !== null) return words;
    return this.#isMentioning ? line : this.#mention + line;
  }

  /** Keeps the worker that replied to a line with a mention. */
  remember(name: string): void {
    if (this.#isMentioning && name !== "") this.#mention = `@${name} `;
  }
}

const COMMAND = /^[/!]answer\s+([^]+)$/i;

/** Reads the user's lines, and decides which of them answer a question. */
class QuestionPrompt {
  readonly #context: BaseContext;
  readonly #prompt: ChatPrompt;
  #asked: PendingQuestion | null = null;
  /** The next line, when the prompt opened for a question during a reply. */
  #typing: Promise<string | null> | null = null;
  #talking: ChatTurn | null = null;
  /** Whether the prompt shows a question. No other output may use its line then. */
  open = false;

  constructor(context: BaseContext, prompt: ChatPrompt) {
    this.#context = context;
    this.#prompt = prompt;
  }

  async readLine(): Promise<string | null> {
    const typing = this.#typing ?? this.#prompt.next();
    this.#typing = null;
    return await typing;
  }

  /** Drops the current question if it is closed. */
  async dropIfClosed(): Promise<void> {
    if (this.#asked !== null && await this.#openOptions(this.#asked.questionId) === null) this.#asked = null;
  }

  // Without the right to read questions the call fails. The question then counts as open without options, so each line answers it.
  async #openOptions(id: string): Promise<string[] | null> {
    return await this.#context.client.call("GET /api/questions/:id", { params: { id } })
      .then(({ value }) => value.status === "open" ? value.options : null, () => []);
  }

  /** Returns the answer in a line and the message to reply to, or null for a line that is no answer. */
  takeAnswer(line: string): { words: string; to: string } | null {
    if (this.#asked === null) return null;
    const { messageId: to, options } = this.#asked;
    const words = COMMAND.exec(line.trim())?.[1]?.trim() ?? line.trim();
    const fits = COMMAND.test(line.trim()) || options.length === 0 || options.includes(words) ||
      /^\d+$/.test(words) && Number(words) >= 1 && Number(words) <= options.length;
    if (!fits) return null;
    this.#asked = null;
    return { words, to };
  }

  async listenDuring(talking: ChatTurn, work: () => Promise<void>): Promise<void> {
    this.#talking = talking;
    this.#prompt.busy = true;
    try {
      await work();
    } finally {
      this.#talking = null;
      this.#prompt.busy = false;
    }
  }

  /** Explains how to answer a new question, and reads the answer while the run may wait for it. */
  asked({ id, question_id }: Reply): void {
    this.open = true;
    void this.#ask(id, question_id ?? "").finally(() => this.open = false);
  }

  hide(): void {
    this.#prompt.hide();
  }

  show(): void {
    this.#prompt.show();
  }

  async #ask(messageId: string, questionId: string): Promise<void> {
    const { note, out } = this.#context;
    const options = await this.#openOptions(questionId);
    if (options === null) return;
    this.#asked = { messageId, questionId, options };
    note(out.style.dim(options.length === 0 ? HINT_FREE : HINT_OPTIONS));
    while (this.#talking !== null && this.#asked?.messageId === messageId) {
      const line = await (this.#typing ??= this.#prompt.next());
      // The run has ended, so the line belongs to the next prompt.
      if (this.#talking === null) return;
      if (line === null) return;
      this.#typing = null;
      if (line.trim() === "") continue;
      const answer = this.takeAnswer(line);
      if (answer === null) note(out.style.dim(HINT_OPTIONS));
      else this.#talking.answer(answer.words, answer.to);
    }
  }
}

const HINT_FREE = "Your next line is the answer.";
const HINT_OPTIONS = "Answer with an option's number or text, or with /answer <text>.";
