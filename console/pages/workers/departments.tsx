import { Pencil, Plus, Trash2 } from "lucide-preact";
import { useState } from "preact/hooks";
import { api, load } from "../../live/api.ts";
import type { Resource } from "../../live/resource.ts";
import { hasScope } from "../../live/session.ts";
import { Button } from "../../parts/button.tsx";
import { Dialog } from "../../parts/dialog.tsx";
import { FormDialog, useForm } from "../../parts/form.tsx";
import { pluralize } from "../../parts/format.ts";
import { Empty, LoadState } from "../../parts/notice.tsx";
import { type Department, listDepartmentOptions, listDescendants } from "./department_tree.ts";

interface DialogProps {
  departments: Resource<Department[]>;
  onClose: () => void;
}

export function DepartmentsDialog({ departments, onClose }: DialogProps) {
  const [edited, setEdited] = useState<Department | "new" | null>(null);
  const { data: all, error, reload } = departments;
  if (edited !== null) {
    return (
      <DepartmentForm
        department={edited === "new" ? null : edited}
        all={all ?? []}
        onClose={() => (setEdited(null), reload())}
      />
    );
  }
  return (
    <Dialog title="Departments" onClose={onClose} wide>
      {all === undefined ? <LoadState error={error} /> : all.length === 0
        ? (
          <Empty title="No departments yet.">
            <p>Departments group workers in a tree. A worker can be in several.</p>
          </Empty>
        )
        : (
          <ul class="tree">
            {all.map((one) => (
              <DepartmentRow
                key={one.id}
                department={one}
                edit={() => setEdited(one)}
                reload={reload}
              />
            ))}
          </ul>
        )}
      <div class="actions end">
        <Button scope="write:departments" class="left" icon={Plus} press={() => setEdited("new")}>
          New department
        </Button>
        <button type="button" onClick={onClose}>Close</button>
      </div>
    </Dialog>
  );
}

interface RowProps {
  department: Department;
  edit: () => void;
  reload: () => void;
}

function DepartmentRow({ department: { id, name, depth, workers }, edit, reload }: RowProps) {
  const params = { path: { id_or_name: id } };
  return (
    <li style={{ paddingInlineStart: `${depth * 20}px` }}>
      <span class="tree-name">{name}</span>
      <span class="quiet">{pluralize(workers, "worker")}</span>
      {hasScope("write:departments") && (
        <>
          <Button class="icon small" icon={Pencil} label={`Edit ${name}`} press={edit} />
          <Button
            class="icon small"
            icon={Trash2}
            label={`Delete ${name}`}
            confirm={{
              title: `Delete ${name}?`,
              text: workers === 0
                ? "The department is deleted. It has no workers."
                : `The department is deleted. Its ${
                  workers === 1 ? "worker is" : `${workers} workers are`
                } kept.`,
              action: "Delete department",
            }}
            press={() => load(api.DELETE("/api/departments/{id_or_name}", { params }))}
            done="Deleted"
            after={reload}
          />
        </>
      )}
    </li>
  );
}

interface FormProps {
  department: Department | null;
  all: Department[];
  onClose: () => void;
}

function DepartmentForm({ department, all, onClose }: FormProps) {
  const inside = department === null ? new Set<string>() : listDescendants(all, department.id);
  const form = useForm({
    initial: { name: department?.name ?? "", parent_id: department?.parentId ?? "" },
    async send(body) {
      if (department === null) await load(api.POST("/api/departments", { body }));
      else {
        const params = { path: { id_or_name: department.id } };
        await load(api.PUT("/api/departments/{id_or_name}", { params, body }));
      }
      onClose();
    },
  });
  return (
    <FormDialog
      form={form}
      title={department === null ? "New department" : "Department"}
      action="Save"
      onClose={onClose}
      fields={[
        { name: "name", label: "Name", required: true, autofocus: true },
        {
          name: "parent_id",
          label: "Parent department",
          options: [["", "None"], ...listDepartmentOptions(all.filter(({ id }) => !inside.has(id)))],
        },
      ]}
    />
  );
}
