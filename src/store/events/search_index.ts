import type { Database, Statement } from "../db/database.ts";
import { findSetting, storeSetting } from "../db/setting.ts";
import { buildTimedId } from "../migrations/schema_search.ts";

const BATCH_ROWS = 500;

/**
 * Turns the index on or off as the configuration says. Turned on, it adds the rows that were stored without it, oldest first, because
 * the numbers of the index are in the order of the ids. After a kill the next start continues.
 */
export async function switchSearch(
  db: Database,
  isOn: boolean,
  report: (rows: number) => void,
): Promise<void> {
  const wasOn = await findSetting(db, "search_off") === null;
  if (isOn === wasOn) return;
  if (!isOn) {
    await db.write([storeSetting("search_off", "1"), ...CLEAR.map(toStatement)]);
    return;
  }
  let after = await db.readValue<string>(
    "select id from search_entry where source <> 'memory' order by id desc limit 1",
  ) ?? "";
  for (let rows = 0;; rows += BATCH_ROWS) {
    const { rows: [added = []] } = await db.write([{ sql: ADD, args: [after, after, after] }]);
    if (added.length === 0) break;
    after = added.reduce((most, { id }) => String(id) > most ? String(id) : most, after);
    report(rows + added.length);
  }
  await db.write([
    toStatement(
      `insert into search_entry (source, id, scope, key)
      select 'memory', ${buildTimedId("updated_at")}, scope, key
      from memory
      where not exists (
        select 1 from search_entry as entry
        where source = 'memory' and entry.scope = memory.scope and entry.key = memory.key)`,
    ),
    toStatement("delete from setting where name = 'search_off'"),
  ]);
}

const CLEAR = [
  "insert into search_text (search_text) values ('delete-all')",
  "delete from search_entry",
  "delete from search_term",
];

const ADD = `insert into search_entry (source, id)
  select source, id
  from (${
  [["inbound", "inbound_message"], ["outbound", "outbound_message"], ["execution", "execution"]]
    .map(([source, table]) =>
      `select * from (select '${source}' as source, id from ${table} where id > ? order by id limit ${BATCH_ROWS})`
    ).join(" union all ")
})
  order by id
  limit ${BATCH_ROWS}
  returning id`;

function toStatement(sql: string): Statement {
  return { sql, args: [] };
}
