import { need, run } from './flow';
import type { FutureRetrieveResponse } from './generated';
import * as api from './generated';
import { client } from './generated/client.gen';

run((url) => {
  client.setConfig({ baseUrl: url, auth: 'tml-rig' });
  const retrieve = async (requestId: string): Promise<FutureRetrieveResponse | undefined> => {
    const { data, response } = await api.retrieveFuture({ body: { request_id: requestId } });
    if (response?.status === 408) return undefined;
    // The type of the body includes the protobuf form, which is not requested here.
    return need(data, response?.status) as FutureRetrieveResponse;
  };
  return {
    createSession: async (version) => {
      const body = { tags: [], user_metadata: null, sdk_version: version };
      const { data, error } = await api.createSession({ body });
      return need(data?.session_id, error);
    },
    firstModel: async () => {
      const { data, error } = await api.getServerCapabilities();
      return need(data?.supported_models[0]?.model_name, error);
    },
    createModel: async (sessionId, baseModel) => {
      const body = { session_id: sessionId, model_seq_id: 0, base_model: baseModel, lora_config: { rank: 4 } };
      const { data, error } = await api.createModel({ body });
      return need(data?.request_id, error);
    },
    retrieveModelId: async (requestId) => {
      const result = await retrieve(requestId);
      return result && 'model_id' in result ? (result.model_id ?? undefined) : undefined;
    },
    getInfo: async (modelId) => {
      const { data, error } = await api.getInfo({ body: { model_id: modelId } });
      return need(data?.model_id, error);
    },
    saveWeights: async (modelId) => {
      const { data, error } = await api.saveWeights({ body: { model_id: modelId, path: 'a', seq_id: 1 } });
      return need(data?.request_id, error);
    },
    retrievePath: async (requestId) => {
      const result = await retrieve(requestId);
      return result && 'path' in result ? (result.path ?? undefined) : undefined;
    },
    openSampler: async (sessionId, baseModel) => {
      const body = { session_id: sessionId, sampling_session_seq_id: 0, base_model: baseModel };
      const { data, error } = await api.createSamplingSession({ body });
      return need(data?.sampling_session_id, error);
    },
    sample: async (samplingSessionId) => {
      const prompt = { chunks: [{ type: 'encoded_text' as const, tokens: [1, 2] }] };
      const body = { sampling_session_id: samplingSessionId, seq_id: 0, prompt, sampling_params: { max_tokens: 4 } };
      const { data, error } = await api.asample({ body });
      return need(data?.request_id, error);
    },
    listRuns: async () => {
      const { data, error } = await api.listTrainingRuns({ query: { limit: 100 } });
      return need(data, error).training_runs.map((item) => item.training_run_id);
    },
  };
});
