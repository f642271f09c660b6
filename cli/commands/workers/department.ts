import { type Column, field, idField, type Row, timeField } from "../../terminal/column.ts";
import { type AnyCommand, command, type OptionSpec, toFields } from "../command.ts";

// The tree is drawn by indenting names; a pipe gets the parent's id instead.
const COLUMNS: Column[] = [
  idField(),
  {
    name: "name",
    value: (row) => row.name,
    show: (row) => `${"  ".repeat(Number(row.depth))}${row.name}`,
  },
  idField("parent_id"),
  field("sort_order"),
  field("worker_count"),
  timeField("updated_at"),
];

const PARENT = {
  flags: "--parent <id|name>",
  completion: "department_name",
  about: "the department above it",
  type: "text",
} as const satisfies OptionSpec;
const SORT_ORDER = {
  flags: "--sort-order <n>",
  about: "its place among its siblings, small first",
  type: "int",
} as const satisfies OptionSpec;
const WHO = "id|name";

export const departmentCommands: AnyCommand[] = [
  command({
    name: "list",
    about: "List the tree of departments",
    options: {},
    examples: ["department list", "department list --json"],
    async run({ client, out }) {
      const { json, value } = await client.call("GET /api/departments");
      await out.list(json, flatten(value, 0), COLUMNS);
    },
  }),
  command({
    name: "get",
    about: "Show a department",
    args: [WHO],
    options: {},
    examples: ["department get Research"],
    async run({ client, out, args: [id_or_name = ""] }) {
      const { json, value } = await client.call("GET /api/departments/:id_or_name", {
        params: { id_or_name },
      });
      out.object(json, value);
    },
  }),
  command({
    name: "create",
    about: "Create a department",
    options: {
      name: { flags: "-n, --name <name>", about: "its name; unique", type: "text", required: true },
      parentId: PARENT,
      sortOrder: SORT_ORDER,
    },
    examples: ["department create --name Research", "department create --name Market --parent Research"],
    async run({ client, out, options }) {
      const { json, value } = await client.call("POST /api/departments", { body: toFields(options) });
      out.object(json, value);
    },
  }),
  command({
    name: "update",
    about: "Rename, move or reorder a department; what is not named stays as it is",
    args: [WHO],
    options: {
      name: { flags: "-n, --name <name>", about: "another name", type: "text" },
      parentId: { ...PARENT, about: "move it below this one; empty moves it to the top", allowEmpty: true },
      sortOrder: SORT_ORDER,
    },
    examples: ["department update Market --parent Sales", "department update Market --parent ''"],
    async run({ client, out, args: [id_or_name = ""], options }) {
      const parts = { params: { id_or_name }, body: toFields(options) };
      const { json, value } = await client.call("PUT /api/departments/:id_or_name", parts);
      out.object(json, value);
    },
  }),
  command({
    name: "delete",
    about: "Delete a department that has no children; its workers leave it",
    args: [WHO],
    options: {},
    examples: ["department delete Market"],
    async run({ client, out, args: [id_or_name = ""] }) {
      const params = { id_or_name };
      // What is printed is the id, and the answer to a delete has none.
      const id = out.format !== "ids"
        ? ""
        : (await client.call("GET /api/departments/:id_or_name", { params })).value.id;
      const { json, value } = await client.call("DELETE /api/departments/:id_or_name", { params });
      out.object(json, value, id);
    },
  }),
];

interface Tree {
  children: Tree[];
}

function flatten(trees: readonly Tree[], depth: number): Row[] {
  return trees.flatMap(({ children, ...row }) => [{ ...row, depth }, ...flatten(children, depth + 1)]);
}
