import { need, run } from './flow';
import * as api from './generated';

run((url) => {
  const configuration = new api.Configuration({ basePath: url, apiKey: 'tml-rig' });
  const futures = new api.FuturesApi(configuration);
  const training = new api.TrainingApi(configuration);
  const sampling = new api.SamplingApi(configuration);
  // The generator merges the members of anyOf, and reads the fields of all; the caller knows which result to expect.
  const retrieve = async (requestId: string): Promise<unknown> => {
    try {
      return await (await futures.retrieveFutureRaw({ futureRetrieveRequest: { requestId } })).raw.json();
    } catch (error) {
      if (error instanceof api.ResponseError && error.response.status === 408) return undefined;
      throw error;
    }
  };
  return {
    createSession: async (version) => {
      const createSessionRequest = { tags: [], userMetadata: null, sdkVersion: version };
      return (await new api.SessionApi(configuration).createSession({ createSessionRequest })).sessionId;
    },
    firstModel: async () => {
      const capabilities = await new api.ServiceApi(configuration).getServerCapabilities();
      return need(capabilities.supportedModels[0]?.modelName, capabilities);
    },
    createModel: async (sessionId, baseModel) => {
      const createModelRequest = { sessionId, modelSeqId: 0, baseModel, loraConfig: { rank: 4 } };
      return (await training.createModel({ createModelRequest })).requestId;
    },
    retrieveModelId: async (requestId) => {
      const result = await retrieve(requestId);
      return result ? (api.CreateModelResponseFromJSON(result).modelId ?? undefined) : undefined;
    },
    getInfo: async (modelId) => (await training.getInfo({ getInfoRequest: { modelId } })).modelId,
    saveWeights: async (modelId) => {
      const saveWeightsRequest = { modelId, path: 'a', seqId: 1 };
      return (await new api.WeightsApi(configuration).saveWeights({ saveWeightsRequest })).requestId;
    },
    retrievePath: async (requestId) => {
      const result = await retrieve(requestId);
      return result ? (api.SaveWeightsResponseFromJSON(result).path ?? undefined) : undefined;
    },
    openSampler: async (sessionId, baseModel) => {
      const createSamplingSessionRequest = { sessionId, samplingSessionSeqId: 0, baseModel };
      return (await sampling.createSamplingSession({ createSamplingSessionRequest })).samplingSessionId;
    },
    sample: async (samplingSessionId) => {
      const prompt = { chunks: [{ type: 'encoded_text' as const, tokens: [1, 2] }] };
      const sampleRequest = { samplingSessionId, seqId: 0, prompt, samplingParams: { maxTokens: 4 } };
      return (await sampling.asample({ sampleRequest })).requestId;
    },
    listRuns: async () => {
      const page = await new api.RunsApi(configuration).listTrainingRuns({ limit: 100 });
      return page.trainingRuns.map((item) => item.trainingRunId);
    },
  };
});
