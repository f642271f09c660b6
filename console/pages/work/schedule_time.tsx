import type { Refusal } from "../../live/api.ts";
import { Choice, TextField } from "../../parts/field.tsx";
import { Preview } from "./cron_preview.tsx";
import type { Values } from "./schedule_fields.ts";
import { cronWords } from "./schedule_text.ts";

const OWN = "own";
const COMMON = ["0 * * * *", "0 9 * * *", "0 9 * * 1-5", "0 9 * * 1"];

/** What the parts of the editor are given. */
export interface PartProps {
  values: Values;
  set: (change: Partial<Values>) => void;
  refusal: Refusal | null;
}

/** When it runs: by a cron expression with its next times, or once. */
export function When({ values, set, refusal, fixed }: PartProps & { fixed: boolean }) {
  const { type, cron, zone, at } = values;
  const common = COMMON.includes(cron.trim());
  const here = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const zones = [...new Set(["", zone, here, "UTC", ...Intl.supportedValuesOf("timeZone")])];
  return (
    <>
      {!fixed && (
        <Choice
          label="How often"
          value={type}
          onChange={(value) => set({ type: value as Values["type"] })}
          options={[["scheduled", "Again and again"], ["countdown", "Once, at a time"]]}
        />
      )}
      {type === "countdown"
        ? (
          <TextField
            label="At"
            name="scheduled_at"
            type="datetime-local"
            value={at}
            onInput={(value) => set({ at: value })}
            refusal={refusal}
            hint={`On the clock of ${here}`}
            required
          />
        )
        : (
          <>
            <Choice
              label="When"
              value={common ? cron.trim() : OWN}
              onChange={(value) => set({ cron: value === OWN ? `${cron} ` : value })}
              options={[
                ...COMMON.map((one) => [one, capital(cronWords(one))] as const),
                [OWN, "By a cron expression"],
              ]}
            />
            <TextField
              label="Cron expression"
              name="cron"
              value={cron}
              onInput={(value) => set({ cron: value })}
              refusal={refusal}
              hint="Minute, hour, day of the month, month, day of the week"
              required
            />
            <Choice
              label="Time zone"
              value={zone}
              onChange={(value) => set({ zone: value })}
              options={zones.map((one) => [one, one || "The service's own"] as const)}
            />
            <Preview cron={cron} zone={zone} />
          </>
        )}
    </>
  );
}

function capital(words: string): string {
  return words.charAt(0).toUpperCase() + words.slice(1);
}
