import { SEARCHED_MAX_CHARACTERS, type SearchKind, type SearchSource } from "../../domain/system/search.ts";

// A term of the index has three characters, from planes of Unicode for private use.
const TERM_STARTS = { low: 0xf0000, middle: 0xf1000, high: 0xf2000, kind: 0xf3000, block: 0xf4000 };

/** The search of each kind by its number in the index. */
const KINDS: Readonly<Record<SearchKind, number>> = { message: 1, result: 2, memory: 3 };

/**
 * Rows with the same block term. FTS5 reads whole lists to find that two terms never meet, unless a block term bounds them.
 */
export const BLOCK_ROWS = 16_384;

/** SQL of the term of a block. */
export function buildBlockTerm(block: string): string {
  const { low, middle, block: mark } = TERM_STARTS;
  return `char(${mark}, ${middle} + ((${block}) >> 12), ${low} + ((${block}) & 4095))`;
}

/** SQL of the term of a kind. */
export function buildKindTerm(kind: SearchKind): string {
  const code = TERM_STARTS.kind + KINDS[kind];
  return `char(${code}, ${code}, ${code})`;
}

/** SQL of the term of a conversation or a worker. null while the index has none of its rows. */
export function buildTerm(name: string): string {
  const { low, middle, high } = TERM_STARTS;
  return `(select char(${low} + (number & 4095), ${middle} + (number >> 12 & 4095), ${high} + (number >> 24 & 4095))
      from search_term where name = ${name})`;
}

/** SQL that is true unless the configuration turned the search off. */
const SEARCH_IS_ON = "not exists (select 1 from setting where name = 'search_off')";

/**
 * The index of the search (decision 0039). `search_entry` numbers the rows that can be found, in the order of their ids, and
 * `search_text` has the texts by number. The triggers write both in the batch of the row, so deletion and retention clear them, too.
 */
export const SEARCH_SCHEMA: string[] = [
  // A number for each conversation and each worker.
  `create table search_term (
    number integer primary key,
    -- session:<key> or worker:<id>
    name text not null unique
  ) strict`,

  `create table search_entry (
    number integer primary key,
    source text not null check (source in ('inbound', 'outbound', 'execution', 'memory')),
    -- Of the message or the run. A memory entry has no id, so it gets one with the time of its change.
    id text not null unique,
    scope text not null default '',
    key text not null default ''
  ) strict`,
  `create unique index search_entry_memory on search_entry (scope, key) where source = 'memory'`,

  `create virtual table search_text using fts5(
    text, kind, session, worker, block,
    tokenize = 'trigram', detail = none, content = '', contentless_delete = 1)`,
  // Every write adds a segment to the index. With the default of 4, merging segments takes more time of the writes.
  `insert into search_text (search_text, rank) values ('automerge', 8)`,

  ...indexTexts("inbound", "message", {
    table: "inbound_message",
    text: "content",
    session: "session_key",
    worker: "''",
  }),
  ...indexTexts("outbound", "message", {
    table: "outbound_message",
    text: "content",
    session: "session_key",
    worker: "iif(source_type = 'worker', source_id, '')",
  }),
  ...indexTexts("execution", "result", {
    table: "execution",
    text: "result",
    session: "session_key",
    worker: "worker_id",
  }),
  ...indexTexts("memory", "memory", {
    table: "memory",
    text: "key || ' ' || value",
    session: "scope",
    worker: "''",
  }),
  ...numberRows("inbound", "inbound_message", "content"),
  ...numberRows("outbound", "outbound_message", "content"),
  ...numberRows("execution", "execution", "result"),
  ...numberMemory(),
  // FTS5 ignores the deletion of a row without text.
  `create trigger search_entry_delete after delete on search_entry when ${SEARCH_IS_ON} begin
    delete from search_text where rowid = old.number;
  end`,
];

interface Source {
  table: string;
  /** Expressions in columns of the table; '' for no conversation or no worker. */
  text: string;
  session: string;
  worker: string;
}

// Indexes the text of a new entry, and again when its row has another text.
function indexTexts(
  source: SearchSource,
  kind: SearchKind,
  { table, text, session, worker }: Source,
): string[] {
  const from = `from ${table} where ${
    source === "memory" ? "scope = new.scope and key = new.key" : "id = new.id"
  }`;
  return ["insert", "update of source"].map((event) =>
    `create trigger search_text_${source}_${event.split(" ")[0]} after ${event} on search_entry
    when new.source = '${source}' begin
      insert into search_term (name) select 'session:' || ${session} ${from} and ${session} <> '' on conflict do nothing;
      insert into search_term (name) select 'worker:' || ${worker} ${from} and ${worker} <> '' on conflict do nothing;
      insert or replace into search_text (rowid, text, kind, session, worker, block)
        select new.number, substr(${text}, 1, ${SEARCHED_MAX_CHARACTERS}), ${buildKindTerm(kind)},
          ${buildTerm(`'session:' || ${session}`)}, ${buildTerm(`'worker:' || ${worker}`)},
          ${buildBlockTerm(`new.number / ${BLOCK_ROWS}`)}
        ${from} and ${text} <> '';
    end`
  );
}

// A run gets its number at its start, so that the numbers are in the order of the ids, and its text at its end.
function numberRows(source: SearchSource, table: string, text: string): string[] {
  return [
    `create trigger ${table}_search_insert after insert on ${table} when ${SEARCH_IS_ON} begin
      insert into search_entry (source, id) values ('${source}', new.id);
    end`,
    `create trigger ${table}_search_update after update of ${text} on ${table} when new.${text} <> old.${text} begin
      update search_entry set source = source where id = new.id;
    end`,
    `create trigger ${table}_search_delete after delete on ${table} begin
      delete from search_entry where id = old.id;
    end`,
  ];
}

/** SQL of a new id with the time of a column. */
export function buildTimedId(time: string): string {
  return `printf('%08x-%04x-7%03x-%04x-%012x', ${time} >> 16, ${time} & 65535, abs(random() % 4096),
        32768 + abs(random() % 16384), abs(random() % 281474976710656))`;
}

// A changed entry is as new as its change.
function numberMemory(): string[] {
  const remove = "delete from search_entry where source = 'memory' and scope = old.scope and key = old.key";
  const add = `insert into search_entry (source, id, scope, key)
        select 'memory', ${buildTimedId("new.updated_at")}, new.scope, new.key where ${SEARCH_IS_ON}`;
  return [
    `create trigger memory_search_insert after insert on memory begin
      ${add};
    end`,
    `create trigger memory_search_update after update on memory begin
      ${remove};
      ${add};
    end`,
    `create trigger memory_search_delete after delete on memory begin
      ${remove};
    end`,
  ];
}
