import { ServiceError } from "../../../src/domain/error.ts";
import { ChatPrompt } from "../../terminal/chat_prompt.ts";
import type { BaseContext } from "../command.ts";
import { ChatTurn } from "./chat_turn.ts";
import { Exit } from "../../terminal/exit.ts";
import type { Reply } from "../../client/reply_stream.ts";
import { escapeControls } from "../../terminal/visible.ts";

/** How a conversation on a terminal begins. */
interface ChatLoopOptions {
  /** The session to go on in, or null. */
  known: string | null;
  /** Makes a session for the first line. */
  begin: (line: string) => Promise<string>;
  /** Stands before each line that is no answer. */
  mention: string;
  limitMs: number;
}

/** A question that may be answered: the message that asks it, and its options. */
interface PendingQuestion {
  questionId: string;
  messageId: string;
  options: string[];
}

/**
 * Asks on the terminal again and again. What fails is said and ends nothing; Ctrl-C ends the run, Ctrl-D the chat. A question of
 * the agent can be answered at once, while its run waits for it, or with a later line (contract 12).
 */
export async function runChatLoop(
  context: BaseContext,
  { known, begin, mention, limitMs }: ChatLoopOptions,
): Promise<void> {
  const { io, note, out } = context;
  note(out.style.dim("Ctrl-C stops a run, Ctrl-D ends the chat."));
  let session = known;
  let conversation: ChatTurn | null = known === null ? null : new ChatTurn(context, known);
  using prompt = new ChatPrompt(io, "> ");
  const questions = new QuestionPrompt(context, prompt);
  let stopped = false;
  let stopping = Promise.resolve();
  prompt.onInterrupt = () => {
    stopped = true;
    stopping = (conversation?.stop() ?? Promise.resolve(0)).then(
      (count) => note(count === 0 ? "nothing runs yet" : "stopped; write on in the same conversation"),
      (error) => note(`svc: ${escapeControls(String(error.message))}`),
    );
  };
  while (true) {
    const line = await questions.line();
    if (line === null) break;
    if (line.trim() === "") continue;
    stopped = false;
    try {
      session ??= await begin(line);
      const talking = conversation ??= new ChatTurn(context, session);
      await questions.look();
      const answer = questions.take(line);
      await questions.during(
        talking,
        () =>
          answer === null
            ? talking.say(mention + line, limitMs, { asking: questions })
            : talking.say(answer.words, limitMs, { asking: questions, replyTo: answer.to }),
      );
    } catch (error) {
      const goesOn = error instanceof Exit ||
        error instanceof ServiceError && error.code !== "unauthenticated";
      if (!goesOn || !(error instanceof Error)) throw error;
      // Whoever stopped it knows.
      if (!stopped) note(out.style.red(`svc: ${escapeControls(error.message)}`));
    }
    // The run may end before its stop has been answered; the next prompt stands behind what is said of it.
    await stopping;
  }
  note(session === null ? "" : `\nto go on: svc ctl chat --session ${session}`);
}

const COMMAND = /^[/!]answer\s+([^]+)$/;

/** The lines of a person, and the question that the next one may answer. */
class QuestionPrompt {
  readonly #context: BaseContext;
  readonly #prompt: ChatPrompt;
  #asked: PendingQuestion | null = null;
  /** What is being typed already, because a question came while an answer was awaited. */
  #typing: Promise<string | null> | null = null;
  #talking: ChatTurn | null = null;
  /** Somebody is asked for an answer just now: nothing else may draw on the line. */
  open = false;

  constructor(context: BaseContext, prompt: ChatPrompt) {
    this.#context = context;
    this.#prompt = prompt;
  }

  /** The next line; null at the end. */
  async line(): Promise<string | null> {
    const typing = this.#typing ?? this.#prompt.next();
    this.#typing = null;
    return await typing;
  }

  /** Forgets a question that is not open any more. */
  async look(): Promise<void> {
    if (this.#asked !== null && await this.#openOptions(this.#asked.questionId) === null) this.#asked = null;
  }

  // Whoever may chat need not be allowed to see questions: then each line is an answer, as in the chat itself.
  async #openOptions(id: string): Promise<string[] | null> {
    return await this.#context.client.call("GET /api/questions/:id", { params: { id } })
      .then(({ value }) => value.status === "open" ? value.options : null, () => []);
  }

  /** The answer that a line is, and the message that it replies to; null when it is none. */
  take(line: string): { words: string; to: string } | null {
    if (this.#asked === null) return null;
    const { messageId: to, options } = this.#asked;
    const words = COMMAND.exec(line.trim())?.[1]?.trim() ?? line.trim();
    const fits = COMMAND.test(line.trim()) || options.length === 0 || options.includes(words) ||
      /^\d+$/.test(words) && Number(words) >= 1 && Number(words) <= options.length;
    if (!fits) return null;
    this.#asked = null;
    return { words, to };
  }

  /** Does `work`, in which questions of this conversation may come. */
  async during(talking: ChatTurn, work: () => Promise<void>): Promise<void> {
    this.#talking = talking;
    this.#prompt.busy = true;
    try {
      await work();
    } finally {
      this.#talking = null;
      this.#prompt.busy = false;
    }
  }

  /** A question came: says how it is answered, and takes its answer while the run may wait for it. */
  asked({ id, question_id }: Reply): void {
    this.open = true;
    void this.#ask(id, question_id ?? "").finally(() => this.open = false);
  }

  /** Takes the line that is being typed off the screen, and shows it again behind what was printed. */
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
      // The run is over: the line is for whoever asks next.
      if (this.#talking === null) return;
      if (line === null) return;
      this.#typing = null;
      if (line.trim() === "") continue;
      const answer = this.take(line);
      if (answer === null) note(out.style.dim(HINT_OPTIONS));
      else this.#talking.answer(answer.words, answer.to);
    }
  }
}

const HINT_FREE = "Your next line is the answer.";
const HINT_OPTIONS = "Answer with an option's number or text, or with other words: /answer <text>";
