/** What a script asks of a Capstan, as anybody with a key does. */
export interface Api {
  readonly url: string;
  readonly key: string;
  /** @param body JSON, or bytes as they are */
  request<Body>(
    method: string,
    path: string,
    body?: unknown,
    headers?: Readonly<Record<string, string>>,
  ): Promise<{ readonly status: number; readonly headers: Headers; readonly body: Body }>;
  /** @throws Error when there is none */
  readBytes(path: string): Promise<Uint8Array>;
}

export function createApi(url: string, key: string): Api {
  return {
    url,
    key,
    request: async (method, path, body, headers = {}) => {
      const response = await fetch(url + path, {
        method,
        headers: {
          authorization: `Bearer ${key}`,
          'content-type': body instanceof Uint8Array ? 'application/octet-stream' : 'application/json',
          ...headers,
        },
        ...(body === undefined ? {} : { body: body instanceof Uint8Array ? body : JSON.stringify(body) }),
      });
      const text = await response.text();
      const isJson = response.headers.get('content-type')?.includes('json') === true;
      return { status: response.status, headers: response.headers, body: isJson ? JSON.parse(text) : text };
    },
    readBytes: async (path) => {
      const response = await fetch(url + path, { headers: { authorization: `Bearer ${key}` } });
      if (response.ok) return new Uint8Array(await response.arrayBuffer());
      throw new Error(`${path}: ${response.status} ${await response.text()}`);
    },
  };
}
