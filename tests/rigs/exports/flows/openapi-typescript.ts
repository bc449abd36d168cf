import createClient from 'openapi-fetch';
import { need, run } from './flow';
import type { components, paths } from './generated/schema';

run((url) => {
  const api = createClient<paths>({ baseUrl: url, headers: { 'X-API-Key': 'tml-rig' } });
  const retrieve = async (requestId: string): Promise<components['schemas']['FutureRetrieveResponse'] | undefined> => {
    const { data, response } = await api.POST('/api/v1/retrieve_future', { body: { request_id: requestId } });
    if (response.status === 408) return undefined;
    // The type of the body includes the protobuf form, which is not requested here.
    return need(data, response.status) as components['schemas']['FutureRetrieveResponse'];
  };
  return {
    createSession: async (version) => {
      const body = { tags: [], user_metadata: null, sdk_version: version };
      const { data, error } = await api.POST('/api/v1/create_session', { body });
      return need(data?.session_id, error);
    },
    firstModel: async () => {
      const { data, error } = await api.GET('/api/v1/get_server_capabilities');
      return need(data?.supported_models[0]?.model_name, error);
    },
    createModel: async (sessionId, baseModel) => {
      const body = { session_id: sessionId, model_seq_id: 0, base_model: baseModel, lora_config: { rank: 4 } };
      const { data, error } = await api.POST('/api/v1/create_model', { body });
      return need(data?.request_id, error);
    },
    retrieveModelId: async (requestId) => {
      const result = await retrieve(requestId);
      return result && 'model_id' in result ? (result.model_id ?? undefined) : undefined;
    },
    getInfo: async (modelId) => {
      const body = { model_id: modelId };
      const { data, error } = await api.POST('/api/v1/get_info', { body });
      return need(data?.model_id, error);
    },
    saveWeights: async (modelId) => {
      const body = { model_id: modelId, path: 'a', seq_id: 1 };
      const { data, error } = await api.POST('/api/v1/save_weights', { body });
      return need(data?.request_id, error);
    },
    retrievePath: async (requestId) => {
      const result = await retrieve(requestId);
      return result && 'path' in result ? (result.path ?? undefined) : undefined;
    },
    openSampler: async (sessionId, baseModel) => {
      const body = { session_id: sessionId, sampling_session_seq_id: 0, base_model: baseModel };
      const { data, error } = await api.POST('/api/v1/create_sampling_session', { body });
      return need(data?.sampling_session_id, error);
    },
    sample: async (samplingSessionId) => {
      const prompt = { chunks: [{ type: 'encoded_text' as const, tokens: [1, 2] }] };
      const body = { sampling_session_id: samplingSessionId, seq_id: 0, prompt, sampling_params: { max_tokens: 4 } };
      const { data, error } = await api.POST('/api/v1/asample', { body });
      return need(data?.request_id, error);
    },
    listRuns: async () => {
      const { data, error } = await api.GET('/api/v1/training_runs', { params: { query: { limit: 100 } } });
      return need(data, error).training_runs.map((item) => item.training_run_id);
    },
  };
});
