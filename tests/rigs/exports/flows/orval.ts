import { need, run } from './flow';
import type { FutureRetrieveResponse } from './generated/client';
import * as api from './generated/client';

run((url) => {
  // The generated functions call fetch with a path.
  const send = globalThis.fetch;
  globalThis.fetch = (path, init) =>
    send(new URL(String(path), url), { ...init, headers: { ...init?.headers, 'X-API-Key': 'tml-rig' } });
  const retrieve = async (requestId: string): Promise<FutureRetrieveResponse | undefined> => {
    const response = await api.retrieveFuture({ request_id: requestId });
    if (response.status === 408) return undefined;
    if (response.status !== 200) throw new Error(`status ${response.status}`);
    // The type of the body includes the protobuf form, which is not requested here.
    return response.data as FutureRetrieveResponse;
  };
  return {
    createSession: async (version) => {
      const response = await api.createSession({ tags: [], user_metadata: null, sdk_version: version });
      if (response.status !== 200) throw new Error(`status ${response.status}`);
      return response.data.session_id;
    },
    firstModel: async () => {
      const response = await api.getServerCapabilities();
      if (response.status !== 200) throw new Error(`status ${response.status}`);
      return need(response.data.supported_models[0]?.model_name, response.data);
    },
    createModel: async (sessionId, baseModel) => {
      const body = { session_id: sessionId, model_seq_id: 0, base_model: baseModel, lora_config: { rank: 4 } };
      const response = await api.createModel(body);
      if (response.status !== 200) throw new Error(`status ${response.status}`);
      return response.data.request_id;
    },
    retrieveModelId: async (requestId) => {
      const result = await retrieve(requestId);
      return result && 'model_id' in result ? (result.model_id ?? undefined) : undefined;
    },
    getInfo: async (modelId) => {
      const response = await api.getInfo({ model_id: modelId });
      if (response.status !== 200) throw new Error(`status ${response.status}`);
      return response.data.model_id;
    },
    saveWeights: async (modelId) => {
      const response = await api.saveWeights({ model_id: modelId, path: 'a', seq_id: 1 });
      if (response.status !== 200) throw new Error(`status ${response.status}`);
      return response.data.request_id;
    },
    retrievePath: async (requestId) => {
      const result = await retrieve(requestId);
      return result && 'path' in result ? (result.path ?? undefined) : undefined;
    },
    openSampler: async (sessionId, baseModel) => {
      const body = { session_id: sessionId, sampling_session_seq_id: 0, base_model: baseModel };
      const response = await api.createSamplingSession(body);
      if (response.status !== 200) throw new Error(`status ${response.status}`);
      return response.data.sampling_session_id;
    },
    sample: async (samplingSessionId) => {
      const prompt = { chunks: [{ type: 'encoded_text' as const, tokens: [1, 2] }] };
      const body = { sampling_session_id: samplingSessionId, seq_id: 0, prompt, sampling_params: { max_tokens: 4 } };
      const response = await api.asample(body);
      if (response.status !== 200) throw new Error(`status ${response.status}`);
      return response.data.request_id;
    },
    listRuns: async () => {
      const response = await api.listTrainingRuns({ limit: 100 });
      if (response.status !== 200) throw new Error(`status ${response.status}`);
      return response.data.training_runs.map((item) => item.training_run_id);
    },
  };
});
