// Client of openapi-generator for Go: open a session, create a model, save its weights, and list its run.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"client"
)

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func expect(ok bool, text string) {
	if !ok {
		check(fmt.Errorf("unexpected: %s", text))
	}
}

func main() {
	configuration := client.NewConfiguration()
	configuration.Servers = client.ServerConfigurations{{URL: os.Args[1]}}
	configuration.AddDefaultHeader("X-API-Key", "tml-rig")
	api, ctx := client.NewAPIClient(configuration), context.Background()

	// retrieve polls until the result is ready; the caller knows which of the results it is.
	retrieve := func(requestID string) *client.FutureRetrieveResponse {
		for attempt := 0; attempt < 100; attempt++ {
			body := *client.NewFutureRetrieveRequest(requestID)
			result, response, err := api.FuturesAPI.RetrieveFuture(ctx).FutureRetrieveRequest(body).Execute()
			if response != nil && response.StatusCode == 408 {
				time.Sleep(100 * time.Millisecond)
				continue
			}
			check(err)
			return result
		}
		check(fmt.Errorf("no result after 100 polls"))
		return nil
	}

	sessionBody := *client.NewCreateSessionRequest([]string{}, map[string]interface{}{}, os.Args[2])
	session, _, err := api.SessionAPI.CreateSession(ctx).CreateSessionRequest(sessionBody).Execute()
	check(err)
	capabilities, _, err := api.ServiceAPI.GetServerCapabilities(ctx).Execute()
	check(err)
	baseModel := capabilities.SupportedModels[0].GetModelName()
	modelBody := *client.NewCreateModelRequest(session.SessionId, 0, baseModel)
	modelBody.SetLoraConfig(*client.NewLoraConfig(4))
	created, _, err := api.TrainingAPI.CreateModel(ctx).CreateModelRequest(modelBody).Execute()
	check(err)
	model := retrieve(created.RequestId).CreateModelResponse
	expect(model != nil, "no CreateModelResponse")
	info, _, err := api.TrainingAPI.GetInfo(ctx).GetInfoRequest(*client.NewGetInfoRequest(model.ModelId)).Execute()
	check(err)
	expect(info.ModelId == model.ModelId, info.ModelId)
	saveBody := *client.NewSaveWeightsRequest(model.ModelId)
	saveBody.SetPath("a")
	saveBody.SetSeqId(1)
	saved, _, err := api.WeightsAPI.SaveWeights(ctx).SaveWeightsRequest(saveBody).Execute()
	check(err)
	expect(retrieve(saved.RequestId) != nil, "no result of save_weights")
	samplerBody := *client.NewCreateSamplingSessionRequest(session.SessionId, 0)
	samplerBody.SetBaseModel(baseModel)
	sampler, _, err := api.SamplingAPI.CreateSamplingSession(ctx).CreateSamplingSessionRequest(samplerBody).Execute()
	check(err)
	expect(sampler.SamplingSessionId != "", "no sampling_session_id")
	runs, _, err := api.RunsAPI.ListTrainingRuns(ctx).Limit(100).Execute()
	check(err)
	found := false
	for _, item := range runs.TrainingRuns {
		found = found || item.TrainingRunId == model.ModelId
	}
	expect(found, "the run is not listed")
	fmt.Println("9 calls")
}
