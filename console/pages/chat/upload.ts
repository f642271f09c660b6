import { refusalFrom, refusalOf } from "../../live/api.ts";
import { accessToken, authed } from "../../live/session.ts";

/** Sends a file of a conversation and answers its path on the service; `told` hears how far it is, 0 to 1. Throws Refusal. */
export async function upload(sessionId: string, file: File, told: (part: number) => void): Promise<string> {
  const path = `/api/local/sessions/${sessionId}`;
  // A fetch cannot tell how far an upload is, so authed() only sees to it that the token is good for a while.
  await authed(new Request(path));
  return await new Promise((resolve, reject) => {
    const form = new FormData();
    form.set("file", file);
    const request = new XMLHttpRequest();
    request.open("POST", `${path}/media`);
    request.setRequestHeader("authorization", `Bearer ${accessToken()}`);
    request.responseType = "json";
    request.upload.onprogress = ({ loaded, total }) => told(total === 0 ? 0 : loaded / total);
    request.onerror = () => reject(refusalOf(null));
    request.onload = () => {
      if (request.status === 200) resolve(request.response.path);
      else reject(refusalFrom(request.status, request.response));
    };
    request.send(form);
  });
}
