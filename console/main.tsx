import { render } from "preact";
import { App } from "./app.tsx";
import { ignoreDoublePresses } from "./live/button_press.ts";
import { followSession } from "./live/devices.ts";
import { startServiceWorker } from "./live/service_worker.ts";
import { startSession } from "./live/session.ts";
import { preloadPage } from "./pages.tsx";

preloadPage(location.pathname);
const root = document.getElementById("app");
if (root !== null) {
  // Removes the placeholder of the page.
  root.textContent = "";
  render(<App />, root);
}
ignoreDoublePresses();
startServiceWorker();
followSession();
void startSession();
