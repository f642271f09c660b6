import { type Column, type Row, toColumns } from "../../terminal/column.ts";
import { type AnyCommand, option } from "../command.ts";
import { deleteByName, resource } from "../resource.ts";

const department = resource("department", { arg: "id|name", ref: "department", example: "Market" });

// Indented names show the tree on a terminal. A pipe gets the ID of the parent.
const NAME: Column = {
  name: "name",
  value: (row) => row.name,
  show: (row) => `${"  ".repeat(Number(row.depth))}${row.name}`,
};

const PARENT = option.text("--parent <id|name>", "parent department", { completion: "department" });
const SORT_ORDER = option.int(
  "--sort-order <n>",
  "position among departments of the same parent, lowest first",
);

export const group: AnyCommand[] = [
  department.list("List the tree of departments", "GET /api/departments", {
    examples: ["department list", "department list --json"],
    columns: toColumns("id", NAME, "parent_id sort_order worker_count updated_at"),
    rows: (trees) => flatten(trees, 0),
  }),
  department.get("GET /api/departments/:id_or_name", { examples: ["department get Research"] }),
  department.create("Create a department", "POST /api/departments", {
    options: {
      name: option.text("-n, --name <name>", "unique name", { required: true }),
      parentId: PARENT,
      sortOrder: SORT_ORDER,
    },
    examples: ["department create --name Research", "department create --name Market --parent Research"],
  }),
  department.verb("update", "Rename, move or reorder a department", "PUT /api/departments/:id_or_name", {
    options: {
      name: option.text("-n, --name <name>", "new name"),
      parentId: { ...PARENT, about: "new parent department; empty moves it to the top", allowEmpty: true },
      sortOrder: SORT_ORDER,
    },
    examples: ["department update Market --parent Sales", "department update Market --parent ''"],
  }),
  deleteByName("Delete a department without children. Its workers stay", "department", {
    example: "Market",
    loss: "Its workers stay.",
  }),
];

interface Tree {
  children: Tree[];
}

function flatten(trees: readonly Tree[], depth: number): Row[] {
  return trees.flatMap(({ children, ...row }) => [{ ...row, depth }, ...flatten(children, depth + 1)]);
}
