import { z } from "zod";
import { id, ignoreFields, line, NAME_MAX_BYTES, nameText, time } from "../call/field.ts";

/** Limit of the number of departments, because the list is one response without pages. */
export const DEPARTMENTS_MAX = 2_000;

const shown = {
  id,
  name: z.string(),
  parent_id: id.nullable(),
  sort_order: z.int(),
  worker_count: z.int().meta({ description: "workers directly in it" }),
  created_at: time,
  updated_at: time,
};

export const departmentSchema = z.strictObject(shown).meta({ id: "Department" });
export type Department = z.output<typeof departmentSchema>;

/** A department with all its descendants. */
export const departmentTreeSchema: z.ZodType<DepartmentTree> = z.strictObject({
  ...shown,
  get children() {
    return z.array(departmentTreeSchema);
  },
}).meta({ id: "DepartmentTree" });

export interface DepartmentTree extends Department {
  children: DepartmentTree[];
}

// The command line splits lists at commas, and clients remove dots from the end of a path.
const name = nameText()
  .refine((value) => !value.includes(","), { error: "must not contain a comma" })
  .refine((value) => value !== "." && value !== "..", { error: "must not be . or .." });

const sortOrder = z.int().min(-1_000_000_000).max(1_000_000_000);

/** A department in a path or a reference: its id, or its name in any case. */
export const departmentKey = line(NAME_MAX_BYTES).meta({ description: "id or name" });

const parent = z.union([departmentKey, z.literal("")]).nullable()
  .meta({ description: 'id or name of the parent department; null or "" for none' });

export const departmentCreateSchema = z.strictObject({
  name,
  parent_id: parent.default(null),
  sort_order: sortOrder.default(0),
}).meta({ id: "DepartmentCreate", examples: [{ name: "Research", sort_order: 10 }] });
export type DepartmentCreate = z.output<typeof departmentCreateSchema>;

/** A field that the request omits stays unchanged. PUT ignores read-only fields (contract 1.2). */
export const departmentUpdateSchema = z.strictObject({
  name,
  parent_id: parent,
  sort_order: sortOrder,
  ...ignoreFields("id", "worker_count", "created_at", "updated_at"),
}).partial().meta({ id: "DepartmentUpdate", examples: [{ sort_order: 20 }] });
export type DepartmentUpdate = z.output<typeof departmentUpdateSchema>;

/** Builds the forest of departments. Children keep the order of the list. */
export function buildForest(departments: readonly Department[]): DepartmentTree[] {
  const trees = new Map(departments.map((one) => [one.id, { ...one, children: [] as DepartmentTree[] }]));
  const roots: DepartmentTree[] = [];
  for (const tree of trees.values()) {
    const above = tree.parent_id === null ? undefined : trees.get(tree.parent_id);
    if (above === undefined) roots.push(tree);
    else above.children.push(tree);
  }
  return roots;
}
