import type { Client } from "../client/client.ts";
import type { Column, Row } from "../terminal/column.ts";

const UUID = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/i;
const NAMES_MAX = 100;

// The columns with a worker, and their headers on a terminal.
const COLUMNS: Record<string, string> = {
  worker_id: "worker",
  source_id: "source",
  target: "target",
  detail: "detail",
};

/**
 * Replaces the IDs of workers by their names in a table for people. A worker that was deleted, or that the caller may not see, keeps the
 * ending of its ID.
 */
export async function showWorkerNames(client: Client, columns: Column[], rows: Row[]): Promise<Column[]> {
  const wanted = columns.filter(({ name }) => Object.hasOwn(COLUMNS, name));
  const ids = [
    ...new Set(wanted.flatMap((column) => rows.flatMap((row) => UUID.exec(readText(column, row)) ?? []))),
  ].slice(0, NAMES_MAX);
  if (ids.length === 0) return columns;
  const query = { id: ids.join(","), page_size: NAMES_MAX };
  const found = await client.call("GET /api/workers", { query }).then(({ value }) => value, () => []);
  const names = new Map(found.map(({ id, name }) => [id, name]));
  // The detail of a failure may contain other IDs.
  const show = (text: string) =>
    text.replace(UUID, (id) => names.get(id) ?? (id === text ? `…${id.slice(-6)}` : id));
  return columns.map((column) =>
    !wanted.includes(column) ? column : {
      name: COLUMNS[column.name] ?? column.name,
      value: column.value,
      show: (row) => show(readText(column, row)),
    }
  );
}

function readText({ value }: Column, row: Row): string {
  const text = value(row);
  return typeof text === "string" ? text : "";
}
