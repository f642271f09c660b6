import { parseProblem } from "../../live/api.ts";
import { toApiError } from "../../live/api_error.ts";
import { getAccessToken, sendAuthorized } from "../../live/session.ts";

/** Uploads a file and returns its path on the service. Reports the progress from 0 to 1. Throws ApiError. */
export async function upload(
  sessionId: string,
  file: File,
  report: (share: number) => void,
): Promise<string> {
  const path = `/api/local/sessions/${sessionId}`;
  // A fetch reports no progress, so this request only renews the token.
  await sendAuthorized(new Request(path));
  return await new Promise((resolve, reject) => {
    const form = new FormData();
    form.set("file", file);
    const request = new XMLHttpRequest();
    request.open("POST", `${path}/media`);
    request.setRequestHeader("authorization", `Bearer ${getAccessToken()}`);
    request.responseType = "json";
    request.upload.onprogress = ({ loaded, total }) => report(total === 0 ? 0 : loaded / total);
    request.onerror = () => reject(toApiError(null));
    request.onload = () => {
      if (request.status === 200) resolve(request.response.path);
      else reject(parseProblem(request.status, request.response));
    };
    request.send(form);
  });
}
