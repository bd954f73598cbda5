// Everything a program that uses Esker includes.
#pragma once

#include <esker/runtime.hpp>
