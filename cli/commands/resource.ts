import type { Api } from "../../src/http/app.ts";
import type { Answer, Client, RequestParts } from "../client/client.ts";
import type { RefKind } from "../client/resource_ref.ts";
import type { Column, Row } from "../terminal/column.ts";
import { EXIT, Exit, usageError } from "../terminal/exit.ts";
import { confirm } from "../terminal/prompt.ts";
import {
  type AnyCommand,
  command,
  type Context,
  longFlag,
  option,
  type OptionSpec,
  SHARED_OPTIONS,
  toFields,
  type Values,
} from "./command.ts";
import { showWorkerNames } from "./worker_names.ts";

type Endpoint = keyof Api & string;
type Options = Record<string, OptionSpec>;
type Response<E extends Endpoint> = Api[E]["response"];
type Input<E extends Endpoint> = E extends `${"GET" | "DELETE"} ${string}` ? RequestParts<E>["query"]
  : RequestParts<E>["body"];

/** A command that sends one request and prints the response. Arguments fill the path in order. */
interface RequestSpec<E extends Endpoint, O extends Options> {
  name: string;
  about: string;
  isDefault?: boolean;
  endpoint: E;
  args?: string[];
  refs?: Record<string, RefKind>;
  options?: O;
  examples: string[];
  /** Refuses options that contradict each other before the request. */
  check?: (options: Values<O>) => void;
  /** Builds the query of GET and DELETE, or the body. By default every option becomes the field of its name. */
  input?: (options: Values<O>, context: Context) => Input<E> | Promise<Input<E>>;
  /** The columns of a list. Without columns the response is printed as one object. */
  columns?: readonly Column[];
  /** Converts a response that is no list of rows to rows. */
  rows?: (value: Response<E>, options: Values<O>) => Row[];
  /** Returns what `-q` prints; the `id` of the response by default. */
  id?: (row: Row, args: string[]) => string;
  /** Runs before the response is printed, and may throw instead. */
  before?: (json: string, value: Response<E>, context: Context) => void;
  /** Runs after the response was printed, for warnings and exit codes. */
  after?: (value: Response<E>, context: Context, headers: Headers) => void;
}

/** Declares a command that sends one request and prints the response. */
export function requestCommand<E extends Endpoint, const O extends Options>(
  { endpoint, check, input, columns, rows, id, before, after, options = {} as O, ...spec }: RequestSpec<E, O>,
): AnyCommand {
  return command({
    ...spec,
    options: options as Options,
    async run(context) {
      const { client, out, args } = context;
      const given = context.options as Values<O>;
      if (spec.name === "update" && Object.keys(given).length === 0) {
        throw usageError(
          `nothing to change: specify at least one flag, such as ${longFlag(firstOption(options))}`,
        );
      }
      check?.(given);
      const fields = await (input?.(given, context) ?? toFields(context.options)) as object;
      const { json, value, headers } = await send(client, endpoint, args, fields);
      before?.(json, value as Response<E>, context);
      if (columns === undefined) {
        const row = value as Row;
        if (id === undefined) out.object(json, row);
        else out.object(json, row, id(row, args));
      } else {
        const all = rows?.(value as Response<E>, given) ?? value as Row[];
        const shown = out.format === "table"
          ? await showWorkerNames(client, [...columns], all)
          : [...columns];
        await out.list(json, all, shown, id && ((row) => id(row, args)));
        const more = explainNextPage(headers, all.length, options, context);
        if (more !== null) context.note(more);
      }
      after?.(value as Response<E>, context, headers);
    },
  });
}

/** Names the flag that prints the next page: `--page`, or in a list without page numbers `--cursor`. */
function explainNextPage(
  headers: Headers,
  rows: number,
  options: Options,
  given: Pick<Context, "options">,
): string | null {
  const [, query] = /^<[^?>]*\?([^>]*)>; rel="next"$/.exec(headers.get("link") ?? "") ?? [];
  if (query === undefined) return null;
  if ("cursor" in options) return `more results: use --cursor ${new URLSearchParams(query).get("cursor")}`;
  return `${rows} of ${headers.get("x-total-count")}, use --page ${Number(given.options.page ?? 1) + 1}`;
}

function firstOption(options: Options): OptionSpec {
  return Object.values(options)[0] ?? SHARED_OPTIONS.json;
}

function send(client: Client, endpoint: Endpoint, args: string[], fields: object): Promise<Answer<unknown>> {
  const names = [...endpoint.matchAll(/:(\w+)/g)].map(([, name = ""]) => name);
  const params = Object.fromEntries(names.map((name, at) => [name, args[at] ?? ""]));
  const place = /^(GET|DELETE) /.test(endpoint) ? "query" : "body";
  const parts = Object.keys(fields).length === 0 ? { params } : { params, [place]: fields };
  return client.call(endpoint, parts as RequestParts<typeof endpoint>) as Promise<Answer<unknown>>;
}

type Rest<E extends Endpoint, O extends Options> =
  & Partial<Pick<RequestSpec<E, O>, "examples">>
  & Omit<RequestSpec<E, O>, "name" | "about" | "endpoint" | "examples">;

/** Declares the commands of one kind of thing. `arg` names their argument, and their examples use `example`. */
export function resource(
  noun: string,
  { arg, ref, example }: { arg: string; ref?: RefKind; example: string },
) {
  const refs = ref === undefined ? {} : { [arg]: ref };
  function verb<E extends Endpoint, const O extends Options = Record<never, OptionSpec>>(
    name: string,
    about: string,
    endpoint: E,
    rest: Rest<E, O> = {},
  ): AnyCommand {
    return requestCommand({
      name,
      about,
      endpoint,
      args: [arg],
      refs,
      examples: [`${noun} ${name} ${example}`],
      ...rest,
    } as RequestSpec<E, O>);
  }
  return {
    verb,
    list: <E extends Endpoint, const O extends Options>(about: string, endpoint: E, rest: Rest<E, O>) =>
      verb("list", about, endpoint, { examples: [`${noun} list`], ...rest, args: [], refs: {} }),
    get: <E extends Endpoint>(endpoint: E, rest: Rest<E, Record<never, OptionSpec>> = {}) =>
      verb("get", `Show ${/^[aeio]/.test(noun) ? "an" : "a"} ${noun}`, endpoint, rest),
    create: <E extends Endpoint, const O extends Options>(about: string, endpoint: E, rest: Rest<E, O>) =>
      verb("create", about, endpoint, { ...rest, args: [], refs: {} }),
    delete: <E extends Endpoint>(
      about: string,
      endpoint: E,
      { loss, name = "delete", ...rest }: Deletion<E>,
    ) =>
      verb(name, about, endpoint, {
        id: (_row, [id = ""]) => id,
        ...rest,
        options: { yes: YES },
        async input({ yes }, context) {
          const [what = ""] = context.typed;
          if (!yes) await confirmLoss(context, `Delete ${noun} ${what}? ${loss}`);
          return {} as Input<E>;
        },
      }),
  };
}

/** A command that deletes, and what the question before it says about the loss. */
type Deletion<E extends Endpoint> = Rest<E, Record<never, OptionSpec>> & { loss: string; name?: string };

export const YES = option.flag("--yes", "skip the confirmation on a terminal");

/** Asks on a terminal before a deletion. A script is never asked. Throws Exit 7 if the answer is not yes. */
export async function confirmLoss({ io }: Pick<Context, "io">, question: string): Promise<void> {
  if (!io.inIsTerminal || !io.errIsTerminal) return;
  if (!await confirm(io, question, "--yes")) throw new Exit(EXIT.declined, "Canceled. Deleted nothing.");
}

/** Declares `delete` for things that a name identifies. For -q it first reads the ID, which the response lacks. */
export function deleteByName(
  about: string,
  noun: "user" | "department",
  { example, loss }: { example: string; loss: string },
): AnyCommand {
  return command({
    name: "delete",
    about,
    args: ["id|name"],
    refs: { "id|name": noun },
    options: { yes: YES },
    examples: [`${noun} delete ${example}`],
    async run({ client, out, args: [id_or_name = ""], typed: [what], options: { yes }, io }) {
      if (!yes) await confirmLoss({ io }, `Delete ${noun} ${what}? ${loss}`);
      const params = { id_or_name };
      const id = out.format === "ids"
        ? (await client.call(`GET /api/${noun}s/:id_or_name`, { params })).value.id
        : "";
      const { json, value } = await client.call(`DELETE /api/${noun}s/:id_or_name`, { params });
      out.object(json, value, id);
    },
  });
}

/** Declares a flag that filters a list by one or more of these values. */
export function filterOption<const C extends readonly string[]>(flags: string, field: string, choices: C) {
  return option.text(flags, `filter by ${field}`, { choices, multiple: true });
}

/** `--text` of a list with the filter. */
export const TEXT = option.text("--text <text>", "filter by a part of the text");

/** Paging flags of a list (interface 4.2). */
export function pageOptions(max: number) {
  return {
    page: option.int("--page <n>", "page number", { default: 1 }),
    pageSize: option.int("--page-size <n>", `rows per page, at most ${max}`, { default: 50 }),
  };
}

/** `--session-key` of a command that filters by conversation. */
export const SESSION_KEY = option.text("--session-key <key>", "filter by conversation", {
  completion: "session_key",
});
/** `--engine` of a list. */
export const ENGINE_FILTER = option.text("--engine <names>", "filter by engine", {
  completion: "engine",
  multiple: true,
});
/** `--worker`, also as `--worker-id`, of a command that filters by worker. */
export const WORKER_ID = option.text("--worker, --worker-id <id|name>", "filter by worker", {
  completion: "worker",
  ref: "worker",
});
