// plimsoll/fetch: a drop-in `fetch` that sends each request to the endpoint that can take it.

export { createFetch } from "./create-fetch";
export type { FetchFunction, FetchOptions, FetchRequest, LeaseSource } from "./options";
