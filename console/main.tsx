import { render } from "preact";
import { App } from "./app.tsx";
import { pressOnce } from "./live/button_press.ts";
import { startSession } from "./live/session.ts";
import { loadAhead } from "./pages.tsx";

loadAhead(location.pathname);
const root = document.getElementById("app");
if (root !== null) {
  // What the page says until its script is here.
  root.textContent = "";
  render(<App />, root);
}
pressOnce();
void startSession();
