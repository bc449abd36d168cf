// The flow of every client: open a session, create a model, save its weights, and list its run.
export interface Client {
  createSession(version: string): Promise<string>;
  firstModel(): Promise<string>;
  createModel(sessionId: string, baseModel: string): Promise<string>;
  /** Poll once; undefined while the result is not ready. */
  retrieveModelId(requestId: string): Promise<string | undefined>;
  getInfo(modelId: string): Promise<string>;
  saveWeights(modelId: string): Promise<string>;
  retrievePath(requestId: string): Promise<string | undefined>;
  openSampler(sessionId: string, baseModel: string): Promise<string>;
  sample(samplingSessionId: string): Promise<string>;
  listRuns(): Promise<string[]>;
}

const wait = async (poll: () => Promise<string | undefined>): Promise<string> => {
  for (let attempt = 0; attempt < 100; attempt += 1) {
    const result = await poll();
    if (result !== undefined) return result;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error('no result after 100 polls');
};

const expectEqual = (got: unknown, expected: unknown): void => {
  if (got !== expected) throw new Error(`expected ${String(expected)}, got ${String(got)}`);
};

/** Return the value, or raise an error with the response that has none. */
export const need = <T>(value: T | null | undefined, response: unknown): T => {
  if (value === null || value === undefined) throw new Error(`unexpected response: ${JSON.stringify(response)}`);
  return value;
};

export const run = async (connect: (url: string) => Client): Promise<void> => {
  const [url, version] = process.argv.slice(2);
  const client = connect(need(url, process.argv));
  const sessionId = await client.createSession(need(version, process.argv));
  const baseModel = await client.firstModel();
  const created = await client.createModel(sessionId, baseModel);
  const modelId = await wait(() => client.retrieveModelId(created));
  expectEqual(await client.getInfo(modelId), modelId);
  const saved = await client.saveWeights(modelId);
  expectEqual(await wait(() => client.retrievePath(saved)), `tinker://${modelId}/weights/a`);
  need(await client.sample(await client.openSampler(sessionId, baseModel)), 'a request_id of the sample');
  expectEqual((await client.listRuns()).includes(modelId), true);
  console.log('10 calls');
};
