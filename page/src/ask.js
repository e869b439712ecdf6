// Where answers come from: the server that sent the page, or the file that the page is.

const told = JSON.parse(document.getElementById("told").textContent || "{}");
const kept = new Map();
let token = null;

/** Whether the page is a file with its answers in it; and what it is of. */
export const file = told.answers ? { table: told.table, where: told.where } : null;

export class Refusal extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

/** Return a view of a table; the same question is asked once. */
export function ask(table, view, given = {}) {
  const pairs = Object.entries(given).filter(([, value]) => value !== null && value !== undefined && value !== "");
  pairs.sort(([one], [other]) => (one < other ? -1 : 1));
  if (file) {
    const found = told.answers[`${view} ${JSON.stringify(pairs)}`];
    return found === undefined
      ? Promise.reject(new Refusal("This is not in the file: `icetree explore` shows it."))
      : Promise.resolve(found);
  }
  const key = `${view}?${new URLSearchParams(pairs)}`;
  const at = `${table.table} ${key}`;
  if (!kept.has(at)) {
    const path = `ui/tables/${encodeURIComponent(table.namespace)}/${encodeURIComponent(table.name)}/${key}`;
    kept.set(at, get(path).catch((error) => { kept.delete(at); throw error; }));
    if (kept.size > 500) kept.delete(kept.keys().next().value);
  }
  return kept.get(at);
}

/** Forget answers, so that what was committed since is seen. */
export function forget() {
  kept.clear();
}

export async function tables() {
  if (file) return [{ table: file.table }];
  return (await get("ui/tables")).tables;
}

/** Take a token as it is, or exchange a client's name and secret for one. */
export async function enter(name, secret) {
  if (!name) {
    token = secret;
    return;
  }
  const form = new URLSearchParams({
    grant_type: "client_credentials", client_id: name, client_secret: secret, scope: "catalog",
  });
  const answer = await fetch("v1/oauth/tokens", { method: "POST", body: form });
  const found = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Refusal(found.error_description ?? "this was refused", answer.status);
  token = found.access_token;
}

async function get(path) {
  let answer;
  try {
    answer = await fetch(path, { headers: token ? { authorization: `Bearer ${token}` } : {} });
  } catch {
    throw new Refusal("The server does not answer: is `icetree explore` still running?");
  }
  const found = await answer.json().catch(() => null);
  if (!answer.ok) throw new Refusal(found?.error?.message ?? `refused (${answer.status})`, answer.status);
  return found;
}
