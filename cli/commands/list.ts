import type { Api } from "../../src/http/app.ts";
import type { Answer, Client, RequestParts } from "../client/client.ts";
import type { Column, Row } from "../terminal/column.ts";
import { type AnyCommand, command, type Context, type OptionSpec, toFields, type Values } from "./command.ts";

/** Endpoints that answer a list of rows. */
type ListEndpoint = {
  [E in keyof Api & string]: Api[E]["response"] extends readonly object[] ? E : never;
}[keyof Api & string];

/** A command that prints one page of a list. Its options are the filters of the endpoint, by their names. */
interface ListSpec<O extends Record<string, OptionSpec>> {
  name: string;
  about: string;
  options: O;
  examples: string[];
  endpoint: ListEndpoint;
  columns: Column[];
  /** What `-q` prints of a row; its id when absent. */
  id?: (row: Row) => string;
  /** Refuses filters that cannot stand together, before anything is sent. */
  check?: (options: Values<O>) => void;
}

/** Paging flags of a list (interface 4.2). */
export function pageOptions(max: number) {
  return {
    page: { flags: "--page <n>", about: "which page", type: "int", default: 1 },
    pageSize: { flags: "--page-size <n>", about: `rows per page, up to ${max}`, type: "int", default: 50 },
  } as const satisfies Record<string, OptionSpec>;
}

/** Declares a command that prints one page of a list and says on stderr when there is more (contract 6). */
export function listCommand<const O extends Record<string, OptionSpec>>(spec: ListSpec<O>): AnyCommand {
  const { endpoint, columns, id, check, ...rest } = spec;
  return command({
    ...rest,
    options: spec.options as Record<string, OptionSpec>,
    async run(context) {
      check?.(context.options as Values<O>);
      const { json, value, headers } = await readList(context.client, endpoint, toFields(context.options));
      await context.out.list(json, value, columns, id);
      noteMore(context, value.length, headers, Number(context.options.page ?? 1));
    },
  });
}

// Which list it is does not matter from here on: rows are rows.
function readList(client: Client, endpoint: ListEndpoint, query: object): Promise<Answer<Row[]>> {
  return client.call(endpoint, { query } as RequestParts<typeof endpoint>) as Promise<
    Answer<unknown>
  > as Promise<
    Answer<Row[]>
  >;
}

/** Says on stderr when a list goes on: "50 of 312, use --page 2" (contract 6). */
function noteMore(context: Context, shown: number, headers: Headers, page: number): void {
  if (headers.get("link") === null) return;
  context.note(`${shown} of ${headers.get("x-total-count")}, use --page ${page + 1}`);
}
