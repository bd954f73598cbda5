// Pipelines between host threads and a GPU: topics, persistent stages, an exact end. Needs no Runtime and no
// MPI.
//
//   pipeline::Pipeline   topic(), run(); or start(), drain(), stop(), wait(); report()
//   pipeline::on_host, pipeline::on_device    stages: source(), map(), frames(), items()
//   pipeline::Topic, Frame, Stage             what their functions take
//   pipeline::ColumnLayout, ColumnFrame, PageIndex    columns in pages, with an index that lanes read first
//   pipeline::RegionGrid, Halo, RegionSource, RegionTable    grids that cross region by region, for stencils
//   pipeline::RoundTime, divide_teams()               how many teams a GPU's stages should have, as measured
//   pipeline::Options, TopicOptions, Report, PipelineError
#pragma once

#include <esker/pipeline/columns.hpp>
#include <esker/pipeline/crossing.hpp>
#include <esker/pipeline/division.hpp>
#include <esker/pipeline/error.hpp>
#include <esker/pipeline/pipeline.hpp>
#include <esker/pipeline/regions.hpp>
