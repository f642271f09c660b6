import { useState } from "preact/hooks";
import { Link, useLocation, useSearch } from "wouter-preact";
import { api, ask, newKey, type Task, type Worker } from "../../live/api.ts";
import { useDraft } from "../../live/draft.ts";
import { useResource } from "../../live/resource.ts";
import { may } from "../../live/session.ts";
import { workers } from "../../live/workers.ts";
import type { PageProps } from "../../pages.tsx";
import { Choice, TextField } from "../../parts/field.tsx";
import { useSend } from "../../parts/form.tsx";
import { Heading } from "../../parts/page.tsx";
import { Empty, Loading, RefusalNotice, Waiting } from "../../parts/notice.tsx";
import { say } from "../../parts/toast.tsx";
import { ScheduleOptions } from "./schedule_options.tsx";
import { blank, createOf, updateOf, type Values, valuesOf } from "./schedule_fields.ts";
import { When } from "./schedule_time.tsx";

/** A new schedule, or changes to one. What is typed outlives a reload. */
export function ScheduleEditPage({ params: { id = "" } }: PageProps) {
  const worker = new URLSearchParams(useSearch()).get("worker") ?? "";
  if (!may("write:tasks")) return <Empty title="You may look at schedules, and not change them." />;
  if (id !== "") return <Existing id={id} />;
  if (workers.value === undefined) return <Loading />;
  return <ScheduleForm schedule={null} worker={worker || firstOf(workers.value)} />;
}

// What is planned for one that is paused would wait for it.
function firstOf(all: readonly Worker[]): string {
  return (all.find(({ paused }) => !paused) ?? all[0])?.id ?? "";
}

function Existing({ id }: { id: string }) {
  const read = useResource(
    id,
    (signal) => ask(api.GET("/api/tasks/{id}", { params: { path: { id } }, signal })),
  );
  if (read.data === undefined) return <Waiting refusal={read.refusal} />;
  return <ScheduleForm schedule={read.data} worker={read.data.worker_id} />;
}

function ScheduleForm({ schedule, worker }: { schedule: Task | null; worker: string }) {
  const [initial] = useState(() => JSON.stringify(schedule === null ? blank(worker) : valuesOf(schedule)));
  const [draft, setDraft] = useDraft(`schedule.${schedule?.id ?? "new"}`, initial);
  // The same for every try: one whose answer was lost is not made twice.
  const [messageId] = useState(newKey);
  const [, navigate] = useLocation();
  const values = JSON.parse(draft) as Values;
  const set = (change: Partial<Values>) => setDraft(JSON.stringify({ ...values, ...change }));
  const back = schedule === null ? "/console/schedules" : `/console/schedules/${schedule.id}`;
  const { refusal, busy, submit } = useSend(async () => {
    const saved = schedule === null
      ? await ask(api.POST("/api/tasks", { body: createOf(values, messageId) }))
      : await ask(
        api.PUT("/api/tasks/{id}", {
          params: { path: { id: schedule.id } },
          body: updateOf(values, schedule),
        }),
      );
    setDraft(initial);
    say(schedule === null ? "It is scheduled" : "Saved");
    navigate(`/console/schedules/${saved.id}`);
  });
  const known = workers.value ?? [];
  return (
    <>
      <Heading
        title={schedule === null ? "New schedule" : "Edit schedule"}
        above={{ href: back, name: schedule === null ? "Schedules" : "Schedule" }}
      />
      <form class="form scrolled" onSubmit={submit}>
        <RefusalNotice refusal={refusal} />
        <Choice
          label="Worker"
          value={values.worker}
          onChange={(value) => set({ worker: value })}
          options={known.map(({ id, name, paused }) => [id, paused ? `${name} (paused)` : name] as const)}
        />
        <TextField
          label="Instruction"
          name="instruction"
          rows={4}
          value={values.instruction}
          onInput={(value) => set({ instruction: value })}
          refusal={refusal}
          required
        />
        <When values={values} set={set} refusal={refusal} fixed={schedule !== null} />
        <TextField
          label="Name"
          name="name"
          value={values.name}
          onInput={(value) => set({ name: value })}
          refusal={refusal}
          hint="Empty: it is called after its instruction"
        />
        <ScheduleOptions values={values} set={set} refusal={refusal} />
        <div class="actions end sticky">
          <Link href={back} class="button">Leave it</Link>
          <button type="submit" class="primary" disabled={busy}>
            {schedule === null ? "Schedule it" : "Save"}
          </button>
        </div>
      </form>
    </>
  );
}
