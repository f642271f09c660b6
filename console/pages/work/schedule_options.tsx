import { may } from "../../live/session.ts";
import { Choice, TextField } from "../../parts/field.tsx";
import type { PartProps } from "./schedule_time.tsx";

const COMMAND_HINT = "One word a line: the program and its arguments. No shell reads them";

/** What most schedules leave as it is: failures, end, gate, check, and where results go. */
export function ScheduleOptions({ values, set, refusal }: PartProps) {
  const again = values.type === "scheduled";
  return (
    <details open={values.gate !== "" || values.verify !== "" || refusal !== null}>
      <summary>More</summary>
      {again && (
        <>
          <Choice
            label="When it falls due while it still runs"
            value={values.overlap}
            onChange={(value) => set({ overlap: value as typeof values.overlap })}
            options={[["skip", "It is left out"], ["queue", "One waits"], ["replace", "The run is ended"]]}
          />
          <TextField
            label="Pauses itself after so many failures in a row"
            name="pause_after_failures"
            value={values.pauseAfter}
            onInput={(value) => set({ pauseAfter: value })}
            refusal={refusal}
            hint="0: never"
          />
          <TextField
            label="Ends after so many runs"
            name="max_runs"
            value={values.maxRuns}
            onInput={(value) => set({ maxRuns: value })}
            refusal={refusal}
            hint="Empty: it goes on"
          />
          <TextField
            label="Ends at"
            name="until"
            type="datetime-local"
            value={values.until}
            onInput={(value) => set({ until: value })}
            refusal={refusal}
          />
        </>
      )}
      {may("write:commands") && (
        <TextField
          label="Gate: a program that decides whether it runs"
          name="gate"
          rows={3}
          value={values.gate}
          onInput={(value) => set({ gate: value })}
          refusal={refusal}
          hint={`${COMMAND_HINT}. Exit code 0: it runs, with what the program printed; 1: it is left out; any other: it failed`}
        />
      )}
      {may("write:commands") && (
        <TextField
          label="Check: a program that decides whether the work is good"
          name="verify"
          rows={3}
          value={values.verify}
          onInput={(value) => set({ verify: value })}
          refusal={refusal}
          hint={`${COMMAND_HINT}. Empty: none`}
        />
      )}
      <TextField
        label="Results go to"
        name="deliver_to"
        value={values.deliverTo}
        onInput={(value) => set({ deliverTo: value })}
        refusal={refusal}
        hint="The key of a conversation, such as local:…; empty: its own"
      />
    </details>
  );
}
