import { Pencil, Plus, Trash2 } from "lucide-preact";
import { useState } from "preact/hooks";
import { api, ask } from "../../live/api.ts";
import type { Resource } from "../../live/resource.ts";
import { may } from "../../live/session.ts";
import { Act } from "../../parts/button.tsx";
import { confirmed, Dialog } from "../../parts/dialog.tsx";
import { Choice, TextField } from "../../parts/field.tsx";
import { DialogForm, useSend } from "../../parts/form.tsx";
import { manyText } from "../../parts/format.ts";
import { Empty, Waiting } from "../../parts/notice.tsx";
import { attempt } from "../../parts/toast.tsx";
import { below, flat, type Place, type Tree } from "./department_tree.ts";

/** The tree of departments, to be looked at and changed. */
export function Departments({ tree, onClose }: { tree: Resource<Tree[]>; onClose: () => void }) {
  const [edited, setEdited] = useState<Place | "new" | null>(null);
  const places = flat(tree.data ?? []);
  if (edited !== null) {
    return (
      <DepartmentForm
        place={edited === "new" ? null : edited}
        trees={tree.data ?? []}
        onClose={() => (setEdited(null), tree.reload())}
      />
    );
  }
  return (
    <Dialog title="Departments" onClose={onClose} wide>
      {tree.data === undefined
        ? <Waiting refusal={tree.refusal} />
        : places.length === 0
        ? (
          <Empty title="No departments yet.">
            <p>They order workers as a tree, and workers can be in several.</p>
          </Empty>
        )
        : (
          <ul class="tree">
            {places.map((place) => (
              <li key={place.id} style={{ paddingInlineStart: `${place.depth * 20}px` }}>
                <span class="tree-name">{place.name}</span>
                <span class="quiet">{manyText(place.workers, "worker")}</span>
                {may("write:departments") && (
                  <>
                    <button
                      type="button"
                      class="icon small"
                      aria-label={`Change ${place.name}`}
                      onClick={() => setEdited(place)}
                    >
                      <Pencil size={14} aria-hidden="true" />
                    </button>
                    <Act
                      class="icon small"
                      label={`Delete ${place.name}`}
                      run={() => remove(place, tree.reload)}
                    >
                      <Trash2 size={14} aria-hidden="true" />
                    </Act>
                  </>
                )}
              </li>
            ))}
          </ul>
        )}
      <div class="actions end">
        {may("write:departments") && (
          <button type="button" class="left" onClick={() => setEdited("new")}>
            <Plus size={16} aria-hidden="true" /> New department
          </button>
        )}
        <button type="button" onClick={onClose}>Close</button>
      </div>
    </Dialog>
  );
}

async function remove(place: Place, reload: () => void): Promise<void> {
  const yes = await confirmed({
    title: `Delete ${place.name}?`,
    text: place.workers === 0
      ? "The department goes. No worker is in it."
      : `Its ${manyText(place.workers, "worker")} leave it, and stay otherwise as they are.`,
    action: "Delete the department",
  });
  if (!yes) return;
  await attempt(
    () => ask(api.DELETE("/api/departments/{id_or_name}", { params: { path: { id_or_name: place.id } } })),
    "Deleted",
  );
  reload();
}

function DepartmentForm(
  { place, trees, onClose }: { place: Place | null; trees: Tree[]; onClose: () => void },
) {
  const [name, setName] = useState(place?.name ?? "");
  const [parent, setParent] = useState(place?.parentId ?? "");
  const inside = place === null ? new Set<string>() : below(trees, place.id);
  const sent = useSend(async () => {
    const body = { name, parent_id: parent };
    if (place === null) await ask(api.POST("/api/departments", { body }));
    else {
      const path = { id_or_name: place.id };
      await ask(api.PUT("/api/departments/{id_or_name}", { params: { path }, body }));
    }
    onClose();
  });
  return (
    <DialogForm
      title={place === null ? "New department" : "Department"}
      action="Save"
      sent={sent}
      onClose={onClose}
    >
      <TextField
        label="Name"
        name="name"
        value={name}
        onInput={setName}
        refusal={sent.refusal}
        required
        autofocus
      />
      <Choice
        label="Inside"
        value={parent}
        onChange={setParent}
        options={[
          ["", "No other"],
          ...flat(trees).filter(({ id }) => !inside.has(id))
            .map((one) => [one.id, `${"\u2003".repeat(one.depth)}${one.name}`] as const),
        ]}
      />
    </DialogForm>
  );
}
