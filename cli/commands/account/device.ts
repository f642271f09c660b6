import { field, toColumns } from "../../terminal/column.ts";
import type { AnyCommand } from "../command.ts";
import { option } from "../command.ts";
import { pageOptions, resource } from "../resource.ts";

const device = resource("device", {
  arg: "id",
  ref: "device",
  example: "01a1fd23-4a4c-746f-99ac-8860e2641168",
});

const TELL = {
  ...field("tell"),
  show: ({ tell }: Record<string, unknown>) =>
    Object.entries(tell as Record<string, boolean>).flatMap(([name, on]) => on ? [name] : []).join(" "),
};

export const group: AnyCommand[] = [
  device.list("List the devices that you may see, newest first", "GET /api/push/devices", {
    options: { user: option.text("--user <id|name>", "filter by user"), ...pageOptions(100) },
    examples: ["device list", "device list --user ada"],
    columns: toColumns("id name user_name service", TELL, "last_push_at last_push last_error"),
  }),
  device.delete("Delete a device, which receives no more notifications", "DELETE /api/push/devices/:id", {
    loss: "The browser receives nothing until its user turns notifications on again.",
  }),
];
