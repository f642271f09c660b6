import { useState } from "preact/hooks";
import { api, load, type Schemas } from "../../live/api.ts";
import { canReceivePushes, changeTell, getDeviceId, getTell } from "../../live/devices.ts";
import { canNotify, enableNotifications, notificationsEnabled } from "../../live/notifications.ts";
import { useGet, useList } from "../../live/resource.ts";
import { Button } from "../../parts/button.tsx";
import { Checkbox } from "../../parts/field.tsx";
import { Row, ShortListing } from "../../parts/listing.tsx";
import { Section } from "../../parts/page.tsx";
import { Ago } from "../../parts/time.tsx";
import { attempt } from "../../parts/toast.tsx";

type Device = Schemas["Device"];
type Tell = Schemas["DeviceTell"];

const NAMES: Record<keyof Tell, string> = {
  needs_you: "Needs you",
  finished: "Finished",
  text: "with text",
};

/** The notifications of this browser, and the devices of the user. */
export function Devices({ userId }: { userId: string }) {
  const list = useList("/api/push/devices", { user: userId }, /^device\./);
  return (
    <Section title="Notifications">
      {canNotify() && (
        <Checkbox
          label="Notify me in this browser about new inbox items while the console is open"
          checked={notificationsEnabled.value}
          onChange={(on) => void enableNotifications(on)}
        />
      )}
      <DeviceSwitches after={list.reload} />
      <ShortListing
        list={list}
        empty="No devices yet. A device gets notifications while the console is closed."
        row={(device) => <DeviceRow device={device} reload={list.reload} />}
      />
    </Section>
  );
}

function DeviceSwitches({ after }: { after: () => void }) {
  const key = useGet("/api/push/key", {});
  // The choice that the service has yet to store.
  const [wanted, setWanted] = useState<Tell | null>(null);
  const tell = wanted ?? getTell();
  const isOn = tell.needs_you || tell.finished;
  if (!canReceivePushes()) {
    return (
      <p class="hint">
        This browser gets no notifications while the console is closed. They need https, and on an iPhone the
        installed console.
      </p>
    );
  }
  if (key.data === undefined) return key.error && <p class="hint">{key.error.message}</p>;
  async function change(changed: Partial<Tell>): Promise<void> {
    if (wanted !== null) return;
    const next = { ...tell, ...changed };
    setWanted(next);
    await attempt(() => changeTell(next));
    setWanted(null);
    after();
  }
  return (
    <fieldset class="ticks" aria-busy={wanted !== null}>
      <legend>On this device, also while the console is closed</legend>
      <Checkbox
        label="Needs you: new inbox items"
        checked={tell.needs_you}
        onChange={(needs_you) => void change({ needs_you })}
      />
      <Checkbox
        label="Finished: runs that I asked for"
        checked={tell.finished}
        onChange={(finished) => void change({ finished })}
      />
      {isOn && (
        <Checkbox
          label="Include the text of questions, errors and results"
          checked={tell.text}
          onChange={(text) => void change({ text })}
        />
      )}
    </fieldset>
  );
}

function DeviceRow({ device, reload }: { device: Device; reload: () => void }) {
  const { id, name, service, tell, created_at, last_push_at, last_push, last_error } = device;
  const own = id === getDeviceId();
  const told = (Object.keys(NAMES) as (keyof Tell)[]).flatMap((one) => tell[one] ? [NAMES[one]] : []);
  return (
    <Row
      title={own ? `${name} (this device)` : name}
      notes={[told.join(", "), service, ...(last_error === "" ? [] : [`${last_push}: ${last_error}`])]}
      side={
        <>
          <span>
            added <Ago at={created_at} />
          </span>
          <span>
            {last_push_at === null ? "no notification yet" : (
              <>
                notified <Ago at={last_push_at} />
              </>
            )}
          </span>
        </>
      }
    >
      <Button
        class="small danger"
        label={`Remove ${name}`}
        confirm={{
          title: `Remove ${name}?`,
          text: "It gets no more notifications until you turn them on there again.",
          action: "Remove device",
        }}
        press={() =>
          own
            ? changeTell({ needs_you: false, finished: false, text: false })
            : load(api.DELETE("/api/push/devices/{id}", { params: { path: { id } } }))}
        done="Removed"
        after={reload}
      >
        Remove
      </Button>
    </Row>
  );
}
