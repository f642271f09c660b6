import { signal } from "@preact/signals";

const query = matchMedia("(max-width: 720px)");

/** Whether the page is as narrow as a phone, where a table has no space. */
export const narrow = signal(query.matches);

query.addEventListener("change", () => narrow.value = query.matches);
