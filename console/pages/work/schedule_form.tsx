import { useState } from "preact/hooks";
import { useLocation, useSearch } from "wouter-preact";
import type { PageProps } from "../../live/address.ts";
import { api, createKey, load, type Schemas } from "../../live/api.ts";
import { useGet } from "../../live/resource.ts";
import { hasScope } from "../../live/session.ts";
import { workers } from "../../live/workers.ts";
import { FieldView } from "../../parts/field.tsx";
import { Fields, Form, type FormState, useForm } from "../../parts/form.tsx";
import { Empty, Loading, LoadState } from "../../parts/notice.tsx";
import { Heading } from "../../parts/page.tsx";
import { showToast } from "../../parts/toast.tsx";
import { CronPreview } from "./cron_preview.tsx";
import {
  buildRequest,
  COMMAND_FIELDS,
  createValues,
  readValues,
  RECURRING_FIELDS,
  type ScheduleValues,
} from "./schedule_fields.ts";
import { formatCron, isRecurring, TIMED_TYPES } from "./schedule_text.tsx";

type Task = Schemas["Task"];

export function Page({ params: { id = "" } }: PageProps) {
  const worker = new URLSearchParams(useSearch()).get("worker") ?? "";
  if (!hasScope("write:tasks")) return <Empty title="You do not have permission to edit schedules." />;
  if (id !== "") return <ExistingSchedule id={id} />;
  const all = workers.value;
  if (all === undefined) return <Loading />;
  // Selects a worker that is not paused, because a schedule of a paused worker does not run.
  const first = all.find(({ paused }) => !paused) ?? all[0];
  return <ScheduleForm schedule={null} worker={worker || (first?.id ?? "")} />;
}

function ExistingSchedule({ id }: { id: string }) {
  const read = useGet("/api/tasks/{id}", { path: { id } });
  if (read.data === undefined) return <LoadState error={read.error} />;
  return <ScheduleForm schedule={read.data} worker={read.data.worker_id} />;
}

function ScheduleForm({ schedule, worker }: { schedule: Task | null; worker: string }) {
  // Repeating the request with the same id cannot create a second schedule.
  const [message_id] = useState(createKey);
  const [, navigate] = useLocation();
  const back = schedule === null ? "/console/schedules" : `/console/schedules/${schedule.id}`;
  const form = useForm<ScheduleValues>({
    draft: `schedule.${schedule?.id ?? "new"}`,
    initial: schedule === null ? createValues(worker) : readValues(schedule),
    async send(values) {
      const body = buildRequest(values, schedule);
      const saved = schedule === null
        ? await load(
          api.POST("/api/tasks", {
            body: { ...body, type: values.type, message_id } as Schemas["TaskCreate"],
          }),
        )
        : await load(api.PUT("/api/tasks/{id}", { params: { path: { id: schedule.id } }, body }));
      showToast(schedule === null ? "Schedule created" : "Saved");
      navigate(`/console/schedules/${saved.id}`);
    },
  });
  const { values } = form;
  const options = (workers.value ?? []).map(({ id, name, paused }) =>
    [id, paused ? `${name} (paused)` : name] as const
  );
  return (
    <>
      <Heading
        title={schedule === null ? "New schedule" : "Edit schedule"}
        above={{ href: back, name: schedule === null ? "Schedules" : "Schedule" }}
      />
      <Form form={form} action={schedule === null ? "Create schedule" : "Save"} cancel={back} page>
        <Fields
          form={form}
          fields={[
            { name: "worker_id", label: "Worker", options },
            { name: "instruction", label: "Instruction", rows: 4, required: true },
          ]}
        />
        <TimeFields form={form} fixed={schedule !== null} />
        <Fields form={form} fields={[{ name: "name", label: "Name", hint: "Default: the instruction" }]} />
        <details open={values.gate !== "" || values.verify !== "" || form.error !== null}>
          <summary>More options</summary>
          {isRecurring(values.type) && <Fields form={form} fields={RECURRING_FIELDS} />}
          {hasScope("write:commands") && <Fields form={form} fields={COMMAND_FIELDS} />}
          <Fields
            form={form}
            fields={[{
              name: "deliver_to",
              label: "Results conversation",
              hint:
                "Key of the conversation that gets the results. Leave empty for the conversation of the schedule",
            }]}
          />
        </details>
      </Form>
    </>
  );
}

const CUSTOM = "custom";
const PRESETS = ["0 * * * *", "0 9 * * *", "0 9 * * 1-5", "0 9 * * 1"];

function TimeFields({ form, fixed }: { form: FormState<ScheduleValues>; fixed: boolean }) {
  const { type, cron, time_zone } = form.values;
  const here = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const zones = [...new Set(["", time_zone, here, "UTC", ...Intl.supportedValuesOf("timeZone")])];
  const type_field = !fixed && { name: "type", label: "Frequency", options: TIMED_TYPES } as const;
  if (!isRecurring(type)) {
    const hint = `In the time zone of this browser, ${here}`;
    const time = {
      name: "scheduled_at",
      label: "Time",
      type: "datetime-local",
      hint,
      required: true,
    } as const;
    return <Fields form={form} fields={[type_field, time]} />;
  }
  return (
    <>
      <Fields form={form} fields={[type_field]} />
      <FieldView
        field={{
          name: "preset",
          label: "Repeats",
          options: [
            ...PRESETS.map((one) =>
              [one, formatCron(one).replace(/^./, (letter) => letter.toUpperCase())] as const
            ),
            [CUSTOM, "Custom"],
          ],
        }}
        value={PRESETS.includes(cron.trim()) ? cron.trim() : CUSTOM}
        set={(value) => form.set({ cron: value === CUSTOM ? `${cron} ` : String(value) })}
        error={null}
      />
      <Fields
        form={form}
        fields={[
          {
            name: "cron",
            label: "Cron expression",
            hint: "Minute, hour, day of the month, month, day of the week",
            required: true,
          },
          {
            name: "time_zone",
            label: "Time zone",
            options: zones.map((one) => [one, one || "Time zone of the service"] as const),
          },
        ]}
      />
      <CronPreview cron={cron} zone={time_zone} />
    </>
  );
}
